// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference/layer_norm.hpp>

#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
template <int N>
struct norm {
  static constexpr auto define(auto& g) { return fl::input<fl::real, fl::batch, N>(g, "x") | fl::layer_norm; }
};
}  // namespace

TEMPLATE_TEST_CASE("rows have mean 0 and variance 1 before scale and shift", "", float, double) {
  using device = fl::reference<TestType>;
  typename device::context c;
  graph_runner<device> r(fl::graph_of<norm<64>>(), fl::device_table<norm<64>, device>(), {5, 1}, c);
  r.randomize(1);
  r.parameter(0).assign(64, 1);
  r.parameter(1).assign(64, 0);
  for (auto& x : r.value(0)) x = x * 3 + 100;  // far from 0: one pass over squares would lose digits
  r.forward();
  for (int row = 0; row < 5; ++row) {
    double mean = 0, square = 0;
    for (int i = 0; i < 64; ++i) {
      const double y = double(r.value(1)[std::size_t(row * 64 + i)]);
      mean += y / 64;
      square += y * y / 64;
    }
    CHECK(std::abs(mean) < 1e-5);
    CHECK(std::abs(square - 1) < 1e-4);
  }
}
TEST_CASE("a row of equal values, and a row of one, give the shift") {
  using device = fl::reference<double>;
  device::context c;
  graph_runner<device> r(fl::graph_of<norm<1>>(), fl::device_table<norm<1>, device>(), {3, 1}, c);
  r.randomize(1);
  r.forward();
  for (double y : r.value(1)) CHECK(y == r.parameter(1)[0]);
}
