// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/forward_program.hpp>

#include "catch.hpp"
#include "engines.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {
fl::plan two_stages(const fl::graph_view& g, int first_of_second) {
  fl::plan p;
  for (int i = 0; i < g.size(); ++i) p.stage_of.push_back(i >= first_of_second);
  p.peers = {{0}, {1}};
  return p;
}
}  // namespace

TEST_CASE("the forward half of a program has what one output needs, and nothing of backward") {
  const auto g = fl::graph_of<case_gpt>();
  const int logits = fl::find_output(g, "logits");
  fl::plan p = two_stages(g, 5);
  const fl::program loss = fl::forward_program(g, p, g.loss), f = fl::forward_program(g, p, logits);
  int nodes = 0;
  for (const auto& t : f.tasks) {
    CHECK(!t.backward);
    nodes += int(t.nodes.size());
    for (int i : t.nodes) CHECK(i <= logits);
  }
  int expected = 0;
  const auto needed = fl::slice(g, logits);
  for (int i = 0; i < g.size(); ++i) expected += needed[std::size_t(i)] && !g.nodes[std::size_t(i)].op->placeholder;
  CHECK(nodes == expected);
  for (const auto& e : f.edges) CHECK(e.kind == fl::edge_kind::activation);
  CHECK(f.edges.size() == loss.edges.size());
  REQUIRE(f.tasks.size() == 2);
  CHECK(f.tasks[0].sends.size() == f.edges.size());
  CHECK(f.tasks[1].receives.size() == f.edges.size());
  CHECK(fl::share_of(f, 1, logits).parts.at(0).receives.size() == f.edges.size());
}

TEST_CASE("a stage without a part in the output has none, and edges that only others need are gone") {
  const auto g = fl::graph_of<case_gpt>();
  const int logits = fl::find_output(g, "logits");
  fl::plan p = two_stages(g, g.loss);  // the second stage has the loss alone
  CHECK(fl::forward_program(g, p, g.loss).edges.size() == 1);
  const fl::program f = fl::forward_program(g, p, logits);
  CHECK(f.edges.empty());
  CHECK(f.tasks_of_stage[1].empty());
  CHECK(f.tasks[0].sends.empty());
}

TEST_CASE("a stage with the first and the last operators has parts with a wait between them") {
  const auto g = fl::graph_of<case_gpt>();
  fl::plan p = two_stages(g, 6);
  for (int i = g.size() - 4; i < g.size(); ++i) p.stage_of[std::size_t(i)] = 0;
  const fl::forward_share s = fl::share_of(fl::forward_program(g, p, g.loss), 0, g.loss);
  REQUIRE(s.parts.size() == 2);
  CHECK(s.parts[0].receives.empty());
  CHECK(!s.parts[0].sends.empty());
  CHECK(!s.parts[1].receives.empty());
  CHECK(s.parts[1].sends.empty());
}

TEST_CASE("what is an input is not computed") {
  const auto g = fl::graph_of<case_gpt>();
  CHECK_THROWS_AS(fl::forward_program(g, two_stages(g, 5), 0), fl::error);
}
