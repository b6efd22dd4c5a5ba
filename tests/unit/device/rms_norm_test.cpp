// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference/rms_norm.hpp>

#include <fusionllm/ops/ops.hpp>

#include "device_agreement.hpp"
#include "gradient_check.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
template <int N>
struct norms {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, N>(g, "x") | fl::positions<150>;
    auto y = fl::output("y", x | fl::rms_norm) + x | fl::linear<5> | fl::rms_norm.named("n").with_epsilon(0.1);
    return fl::mean_squared_error(y, fl::input<fl::real, fl::batch, fl::time, 5>(g, "target"));
  }
};
}  // namespace

TEST_CASE("gradients of rms_norm agree with central differences") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{3, 1}, fl::sizes{2, 7}}) check_gradients<norms<6>>(s);
}
TEST_CASE("rms_norm on the CPU agrees with plain loops in double") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{2, 3}, fl::sizes{3, 129}}) check_agreement<norms<37>>(s);
  check_agreement<norms<1>>({2, 3});
}
TEST_CASE("rows of rms_norm have a mean square of 1, for any scale of the input") {
  using device = fl::reference<double>;
  device::context c;
  for (const double scale : {1e-1, 1.0, 1e150}) {
    graph_runner<device> r(fl::graph_of<norms<6>>(), fl::device_table<norms<6>, device>(), {2, 3}, c);
    r.randomize(1);
    for (double& x : r.value(0)) x *= scale;
    for (int p = 0; p < r.parameter_count(); ++p)
      if (r.graph().params[std::size_t(p)].path.view() == "norm.weight") r.parameter(p).assign(6, 1.0);
    r.forward();
    const auto& y = r.value(fl::find_output(r.graph(), "y"));
    for (std::size_t row = 0; row < y.size(); row += 6) {
      double squares = 0;
      for (std::size_t i = 0; i < 6; ++i) squares += y[row + i] * y[row + i] / 6;
      CHECK(squares == Approx(1).epsilon(1e-3));
    }
  }
}
