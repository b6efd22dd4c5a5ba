// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference/embedding.hpp>

#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
struct lookup {
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto target = fl::input<fl::real, fl::batch, fl::time, 3>(g, "target");
    return fl::mean_squared_error(fl::output("rows", fl::embedding(tokens, fl::parameter<5, 3>(g, "table"))), target);
  }
};
}  // namespace

TEST_CASE("rows are copied, and a token that occurs often gathers all its cotangents") {
  using device = fl::reference<double>;
  device::context c;
  graph_runner<device> r(fl::graph_of<lookup>(), fl::device_table<lookup, device>(), {2, 3}, c);
  r.randomize(1);
  const int tokens = fl::find_input(r.graph(), "tokens"), rows = fl::find_output(r.graph(), "rows");
  r.integers(tokens) = {4, 1, 4, 0, 4, 1};
  r.forward();
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t f = 0; f < 3; ++f)
      CHECK(r.value(rows)[i * 3 + f] == r.parameter(0)[std::size_t(r.integers(tokens)[i]) * 3 + f]);
  r.gradient(0).assign(15, 1);  // gradients are added to what is there
  r.backward();
  const auto& d = r.cotangent(rows);
  for (std::size_t f = 0; f < 3; ++f) {
    CHECK(r.gradient(0)[4 * 3 + f] == Approx(1 + d[f] + d[6 + f] + d[12 + f]));
    CHECK(r.gradient(0)[2 * 3 + f] == 1);
    CHECK(r.gradient(0)[3 * 3 + f] == 1);
  }
}
