// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference/softmax.hpp>

#include <fusionllm/ops/ops.hpp>

#include "device_agreement.hpp"
#include "gradient_check.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
template <int N>
struct softmaxes {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, N>(g, "x") | fl::positions<150>;
    auto y = fl::output("y", x | fl::softmax) * x;
    return fl::mean_squared_error(y, fl::input<fl::real, fl::batch, fl::time, N>(g, "target"));
  }
};
template <int N>
struct means {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, N>(g, "x") | fl::positions<150>;
    auto rows = fl::output("rows", x | fl::mean());  // (batch, time)
    auto all = fl::output("all", fl::mean_of_all(x * x));
    auto target = fl::input<fl::real, 1>(g, "target");
    return fl::mean_squared_error(all + fl::mean_of_all(rows * rows) + fl::mean(all), target);
  }
};
struct probabilities {
  static constexpr auto define(auto& g) { return fl::input<fl::real, fl::batch, 5>(g, "x") | fl::softmax; }
};
}  // namespace

TEST_CASE("gradients of softmax and mean agree with central differences") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{3, 1}, fl::sizes{2, 7}}) {
    check_gradients<softmaxes<6>>(s);
    check_gradients<means<6>>(s);
  }
}
TEST_CASE("softmax and mean on the CPU agree with plain loops in double") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{2, 3}, fl::sizes{3, 129}}) {
    check_agreement<softmaxes<37>>(s);
    check_agreement<means<37>>(s);
  }
  check_agreement<means<1>>({1, 1});
}
TEST_CASE("softmax sums to 1 and neither overflows nor loses the largest") {
  fl::reference<float>::context plain;
  fl::cpu::context fast(1);
  auto check = [](auto& r) {
    r.value(0) = {1000, 0, -1000, 999, 1000, -3, -3, -3, -3, -3};
    r.forward();
    const auto& y = r.value(1);
    for (float p : y) CHECK(std::isfinite(p));
    CHECK(y[0] + y[1] + y[2] + y[3] + y[4] == Approx(1));
    CHECK(y[0] == Approx(1 / (2 + std::exp(-1.0))));
    CHECK(y[7] == Approx(0.2));
  };
  graph_runner<fl::reference<float>> a(fl::graph_of<probabilities>(),
                                       fl::device_table<probabilities, fl::reference<float>>(), {2, 1}, plain);
  graph_runner<fl::cpu> b(fl::graph_of<probabilities>(), fl::device_table<probabilities, fl::cpu>(), {2, 1}, fast);
  check(a);
  check(b);
}
