// SPDX-License-Identifier: Apache-2.0
// The first example: a small network learns x * y on the square [-1, 1]^2.
// ctest:
#include <fusionllm/fusionllm.hpp>

#include <cstdio>
namespace fl = fusionllm;

struct product {
  static constexpr auto define(auto& g) {
    auto xy = fl::input<fl::real, fl::batch, 2>(g, "xy");
    auto target = fl::input<fl::real, fl::batch, 1>(g, "target");
    auto z = xy | fl::linear<32> | fl::gelu | fl::linear<32> | fl::gelu | fl::linear<1>;
    return fl::mean_squared_error(fl::output("z", z), target);
  }
};

int main() {
  fl::trainer<product> trainer({.batch = 64, .optimizer = {.learning_rate = 1e-2, .adamw = {.weight_decay = 0}}});
  std::vector<float> xy(128), z(64);
  double loss = 1;
  for (fl::u64 step = 0; step < 500; ++step) {
    for (fl::u64 i = 0; i < 128; ++i) xy[i] = 2 * fl::uniform(fl::random_word({.seed = 1, .step = step}, i)) - 1;
    for (std::size_t i = 0; i < 64; ++i) z[i] = xy[2 * i] * xy[2 * i + 1];
    loss = trainer.step({{"xy", std::span(xy), {64, 2}}, {"target", std::span(z), {64, 1}}}).loss;
  }
  const std::vector<float> question{0.5f, -0.6f};
  trainer.predict({{"xy", std::span(question), {1, 2}}}, {"z", std::span(z.data(), 1), {1, 1}});
  std::printf("loss %.5f; 0.5 * -0.6 = %.3f\n", loss, double(z[0]));
  return loss < 0.01 ? 0 : 1;
}
