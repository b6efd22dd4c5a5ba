// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/live_range.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
struct line {  // 0 x, 1 target, 2 linear, 3 add, 4 linear, 5 loss
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    auto target = fl::input<fl::real, fl::batch, 2>(g, "target");
    auto h = x | fl::linear<4>;
    return fl::mean_squared_error(fl::output("sum", h + x) | fl::linear<2>, target);
  }
};
}  // namespace

TEST_CASE("a value lives from its forward to its last reader, forward or backward") {
  const fl::graph_view g = fl::graph_of<line>();
  REQUIRE(g.size() == 6);
  const auto r = fl::live_ranges(g);
  CHECK((r[0].first == 0 && r[0].last == 11 - 2));  // the first linear's backward reads x
  CHECK((r[1].first == 1 && r[1].last == 11 - 5));  // the loss's backward reads the target
  CHECK((r[2].first == 2 && r[2].last == 3));       // add reads it, and only forward
  CHECK((r[3].first == 3 && r[3].last == 11 - 4));
  CHECK((r[4].first == 4 && r[4].last == 11 - 5));
  CHECK((r[5].first == 5 && r[5].last == 5));
  const fl::flags wanted = fl::nodes_with_cotangent(g);
  CHECK_FALSE(fl::kept_for_backward(g, 2, wanted));
  CHECK(fl::kept_for_backward(g, 3, wanted));
}
TEST_CASE("a chain of dropout and add keeps none of its inputs for backward") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  const fl::flags wanted = fl::nodes_with_cotangent(g);
  int checked = 0;
  for (int i = 0; i < g.size(); ++i) {
    const fl::node& n = g.nodes[std::size_t(i)];
    if (n.links != 2 || n.chain[1].op->name != "add") continue;
    CHECK_FALSE(fl::kept_for_backward(g, n.in[0], wanted));  // the linear's result
    ++checked;
  }
  CHECK(checked == 4);
}
TEST_CASE("the peak grows with the micro-batch and is at least the largest value") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  fl::u64 largest = 0;
  for (int i = 0; i < g.size(); ++i) largest = std::max(largest, fl::output_bytes(g, i, {4, 8}));
  CHECK(fl::peak_activation_bytes(g, {4, 8}) >= largest);
  CHECK(fl::peak_activation_bytes(g, {8, 8}) == 2 * fl::peak_activation_bytes(g, {4, 8}) - 4);  // the loss has no batch
}
