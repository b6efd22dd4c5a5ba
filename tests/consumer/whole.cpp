// SPDX-License-Identifier: Apache-2.0
// A consumer of fusionllm::cpu through fusionllm_add_trainer, without a CUDA compiler: its .cu file does not exist.
#include <cstdio>
#include <vector>

#include <fusionllm/fusionllm.hpp>

namespace fl = fusionllm;

static_assert(FUSIONLLM_WITH_CUDA == 0);

struct doubling {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 1>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 1>(g, "y");
    return fl::mean_squared_error(fl::output("z", x | fl::linear<1>), y);
  }
};

int main() {
  fl::trainer<doubling> trainer({.batch = 2, .optimizer = {.learning_rate = 1e-2}});
  const std::vector<float> x{1, -2}, y{2, -4};
  const auto step = [&] { return trainer.step({{"x", std::span(x), {2, 1}}, {"y", std::span(y), {2, 1}}}).loss; };
  const double first = step();
  double last = first;
  for (int i = 0; i < 20; ++i) last = step();
  std::printf("loss %.3f, then %.3f\n", first, last);
  return last < first ? 0 : 1;
}
