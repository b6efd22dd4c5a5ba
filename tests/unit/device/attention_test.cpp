// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference/attention.hpp>

#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
struct bare {  // q, k, v as given
  static constexpr auto define(auto& g) {
    auto qkv = fl::input<fl::real, fl::batch, fl::time, 18>(g, "qkv");
    return fl::record<fl::attention_op, fl::real, fl::shape<fl::batch, fl::time, 6>>(qkv.g, fl::from(qkv.id), {-1, -1},
                                                                                     {{2, 0, 0}, 0});
  }
};
using device = fl::reference<double>;
graph_runner<device> runner(fl::sizes s, device::context& c) {
  return {fl::graph_of<bare>(), fl::device_table<bare, device>(), s, c};
}
}  // namespace

TEST_CASE("attention sees no later position and no other sequence") {
  device::context c;
  auto r = runner({2, 5}, c);
  r.randomize(1);
  r.forward();
  const auto before = r.value(1);
  for (int f = 0; f < 18; ++f) r.value(0)[std::size_t(3 * 18 + f)] += 1;  // sequence 0, position 3
  r.forward();
  for (int b = 0; b < 2; ++b)
    for (int t = 0; t < 5; ++t)
      for (int f = 0; f < 6; ++f) {
        const std::size_t i = std::size_t((b * 5 + t) * 6 + f);
        CHECK((r.value(1)[i] == before[i]) == (b == 1 || t < 3));
      }
}
TEST_CASE("the first position's result is its own value") {
  device::context c;
  auto r = runner({3, 1}, c);
  r.randomize(2);
  r.forward();
  for (int b = 0; b < 3; ++b)
    for (int f = 0; f < 6; ++f)
      CHECK(r.value(1)[std::size_t(b * 6 + f)] == Approx(r.value(0)[std::size_t(b * 18 + 12 + f)]).epsilon(1e-15));
}
TEST_CASE("equal keys give the mean of values, and huge scores do not overflow") {
  device::context c;
  auto r = runner({1, 4}, c);
  r.randomize(3);
  auto& x = r.value(0);
  for (int t = 0; t < 4; ++t)
    for (int f = 6; f < 12; ++f) x[std::size_t(t * 18 + f)] = 0.5;
  r.forward();
  for (int f = 0; f < 6; ++f) {
    double mean = 0;
    for (int t = 0; t < 4; ++t) mean += x[std::size_t(t * 18 + 12 + f)] / 4;
    CHECK(r.value(1)[std::size_t(18 + f)] == Approx(mean));
  }
  for (double& v : x) v *= 1000;
  r.forward();
  for (double y : r.value(1)) CHECK(std::isfinite(y));
}
TEST_CASE("inference gives training's values and saves nothing") {
  device::context c;
  auto a = runner({2, 5}, c), b = runner({2, 5}, c);
  b.mode = fl::pass::inference;
  a.randomize(1);
  b.randomize(1);
  a.forward();
  b.forward();
  CHECK(a.value(1) == b.value(1));
}
