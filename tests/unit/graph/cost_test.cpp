// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/cost.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
int find(const fl::graph_view& g, std::string_view op, int skip = 0) {
  for (int i = 0; i < g.size(); ++i)
    if (g.nodes[std::size_t(i)].op->name == op && skip-- == 0) return i;
  return -1;
}
}  // namespace

TEST_CASE("a linear costs two flops a weight and row forward, twice that backward") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  const fl::node_cost c = fl::cost_of(g, find(g, "linear"), {3, 5});
  CHECK(c.flops_forward == 2 * 3 * 5 * 12 * 36);
  CHECK(c.flops_backward == 2 * c.flops_forward);
  CHECK(c.output_bytes == 3 * 5 * 36 * 4);
  CHECK(c.moved_bytes == (3 * 5 * (12 + 36) + 12 * 36 + 36) * 4);
  CHECK(fl::cost_of(g, find(g, "linear"), {3, 5}, 2).output_bytes == 3 * 5 * 36 * 2);
}
TEST_CASE("attention's and the norm's saved values are counted") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  CHECK(fl::cost_of(g, find(g, "attention"), {3, 5}).saved_bytes == 3 * 5 * 2 * 4);
  CHECK(fl::cost_of(g, find(g, "layer_norm"), {3, 5}).saved_bytes == 2 * 3 * 5 * 4);
  CHECK(fl::cost_of(g, find(g, "cross_entropy"), {3, 5}).saved_bytes == 2 * 3 * 5 * 4);
}
TEST_CASE("a chain costs what its links cost, and recomputes them backward") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  for (int i = 0; i < g.size(); ++i) {
    const fl::node& n = g.nodes[std::size_t(i)];
    if (n.links != 2 || n.chain[0].op->name != "gelu") continue;
    const fl::node_cost c = fl::cost_of(g, i, {3, 5});
    CHECK(c.flops_forward == 11 * 3 * 5 * 24);
    CHECK(c.flops_backward == (11 + 16) * 3 * 5 * 24);
  }
}
TEST_CASE("integers take four bytes whatever a real takes, and inputs cost nothing") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  const fl::node_cost c = fl::cost_of(g, fl::find_input(g, "tokens"), {3, 5}, 8);
  CHECK(c.output_bytes == 3 * 5 * 4);
  CHECK(c.flops_forward + c.flops_backward + c.saved_bytes + c.moved_bytes == 0);
}
