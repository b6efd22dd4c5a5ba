// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference/rotary.hpp>

#include <fusionllm/ops/ops.hpp>

#include "device_agreement.hpp"
#include "gradient_check.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
template <int Heads, int Width>
struct rotated {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, Heads * Width>(g, "x") | fl::positions<150>;
    auto y = fl::output("y", x | fl::rotary<Width>) | fl::linear<3>;
    return fl::mean_squared_error(y, fl::input<fl::real, fl::batch, fl::time, 3>(g, "target"));
  }
};
struct alone {
  static constexpr auto define(auto& g) {
    return fl::input<fl::real, fl::batch, fl::time, 4>(g, "x") | fl::rotary<4>.with_theta(100);
  }
};
using device = fl::reference<double>;
}  // namespace

TEST_CASE("gradients of rotary positions agree with central differences") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{3, 1}, fl::sizes{2, 7}}) {
    check_gradients<rotated<2, 4>>(s);
    check_gradients<rotated<1, 2>>(s);
  }
}
TEST_CASE("rotary positions on the CPU agree with plain loops in double") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{2, 3}, fl::sizes{3, 129}}) {
    check_agreement<rotated<3, 22>>(s);
    check_agreement<rotated<1, 2>>(s);
  }
}
TEST_CASE("feature i turns with feature i + width / 2 by t theta^(-2 i / width)") {
  device::context c;
  graph_runner<device> r(fl::graph_of<alone>(), fl::device_table<alone, device>(), {1, 3}, c);
  r.value(0) = {1, 2, 3, 4, 1, 0, 0, 0, 0, 1, 0, 0};
  r.forward();
  const std::vector<double> expected{1, 2, 3, 4, std::cos(1), 0, std::sin(1), 0, 0, std::cos(0.2), 0, std::sin(0.2)};
  for (std::size_t i = 0; i < 12; ++i) CHECK(r.value(1)[i] == Approx(expected[i]).margin(1e-15));
}
TEST_CASE("products of turned vectors depend on the distance of their times alone") {
  device::context c;
  graph_runner<device> r(fl::graph_of<alone>(), fl::device_table<alone, device>(), {1, 8}, c);
  for (std::size_t t = 0; t < 8; ++t)
    for (std::size_t i = 0; i < 4; ++i) r.value(0)[4 * t + i] = double(i) - 1.3;
  r.forward();
  auto dot = [&](std::size_t s, std::size_t t) {
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += r.value(1)[4 * s + i] * r.value(1)[4 * t + i];
    return sum;
  };
  CHECK(dot(0, 3) == Approx(dot(4, 7)).epsilon(1e-12));
  CHECK(dot(1, 2) == Approx(dot(6, 7)).epsilon(1e-12));
  CHECK(dot(0, 1) != Approx(dot(0, 2)));
}
