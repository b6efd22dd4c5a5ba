// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/slice.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

TEST_CASE("a slice is what an output needs") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  const int logits = fl::find_output(g, "logits");
  const fl::flags keep = fl::slice(g, logits);
  CHECK(keep[std::size_t(fl::find_input(g, "tokens"))]);
  CHECK_FALSE(keep[std::size_t(fl::find_input(g, "targets"))]);
  CHECK_FALSE(keep[std::size_t(g.loss)]);
  CHECK(keep[std::size_t(logits)]);
  int kept = 0;
  for (fl::u8 k : keep) kept += k;
  CHECK(kept == g.size() - 2);
}
TEST_CASE("slices of an input, of the loss and of nothing") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  int of_input = 0, of_loss = 0, of_nothing = 0;
  for (fl::u8 k : fl::slice(g, 0)) of_input += k;
  for (fl::u8 k : fl::slice(g, g.loss)) of_loss += k;
  for (fl::u8 k : fl::slice(g, -1)) of_nothing += k;
  CHECK(of_input == 1);
  CHECK(of_loss == g.size());
  CHECK(of_nothing == 0);
}
TEST_CASE("inputs that nodes read are given once, in the graph's order") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  const int tokens = fl::find_input(g, "tokens"), targets = fl::find_input(g, "targets");
  fl::flags nodes(g.nodes.size(), fl::u8(0));
  CHECK(fl::inputs_read_by(g, nodes).empty());
  nodes[std::size_t(g.loss)] = 1;
  CHECK(fl::inputs_read_by(g, nodes) == std::vector<int>{targets});
  nodes.assign(nodes.size(), fl::u8(1));
  CHECK(fl::inputs_read_by(g, nodes) == std::vector<int>{tokens, targets});
}
