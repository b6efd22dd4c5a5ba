// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/program.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fl::edge_kind;

TEST_CASE("two stages of a chain: one activation there, one cotangent back") {
  const fl::graph_view g = fl::graph_of<linears<3>>();
  const fl::program r = fl::compile(g, plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}));
  REQUIRE(r.edges.size() == 2);
  CHECK(r.edges[0].kind == edge_kind::activation);
  CHECK(r.edges[0].node == 3);
  CHECK((r.edges[0].from == 0 && r.edges[0].to == 1));
  CHECK(r.edges[1].kind == edge_kind::cotangent);
  CHECK(r.edges[1].node == 3);
  CHECK((r.edges[1].from == 1 && r.edges[1].to == 0));
  CHECK(r.edges[1].forward == 0);
  REQUIRE(r.tasks.size() == 4);
  CHECK(r.tasks[0].nodes == std::vector<int>{2, 3});
  CHECK(r.tasks[0].sends == std::vector<int>{0});
  CHECK(r.tasks[1].nodes == std::vector<int>{4, 5});
  CHECK(r.tasks[1].receives == std::vector<int>{0});
  CHECK(r.tasks[2].nodes == std::vector<int>{3, 2});
  CHECK(r.tasks[2].receives == std::vector<int>{1});
  CHECK(r.tasks[3].nodes == std::vector<int>{5, 4});
  CHECK(r.tasks_of_stage[0] == std::vector<int>{0, 2});
  CHECK(r.tasks_of_stage[1] == std::vector<int>{1, 3});
}

TEST_CASE("a stage at both ends has two tasks each way") {
  const fl::graph_view g = fl::graph_of<linears<3>>();
  const fl::program r = fl::compile(g, plan_of({0, 0, 0, 1, 1, 0}, {{0}, {1}}));
  REQUIRE(r.tasks_of_stage[0].size() == 4);
  std::vector<int> depths;
  for (int t : r.tasks_of_stage[0]) depths.push_back(r.tasks[std::size_t(t)].depth);
  CHECK(depths == std::vector<int>{0, 2, 0, 2});
  CHECK(r.edges.size() == 4);
}

TEST_CASE("every operator is in one forward task, and backward those that the loss depends on, at any cut of a GPT") {
  const fl::graph_view g = fl::graph_of<gpt<2, 16>>();
  for (int cut = 3; cut < g.size(); ++cut)
    for (int second = cut; second <= g.size(); second += 3) {
      fl::plan p;
      for (int i = 0; i < g.size(); ++i) p.stage_of.push_back(i < cut ? 0 : i < second ? 1 : 0);
      p.peers = {{0}, {1}};
      const fl::program r = fl::compile(g, p);
      std::vector<int> forward(g.nodes.size()), backward(g.nodes.size());
      for (const fl::task& t : r.tasks) {
        for (int n : t.nodes) ++(t.backward ? backward : forward)[std::size_t(n)];
        for (int e : t.receives) CHECK(r.edges[std::size_t(e)].to == t.stage);
        for (int e : t.sends) CHECK(r.edges[std::size_t(e)].from == t.stage);
      }
      for (int i = 0; i < g.size(); ++i) {
        CHECK(forward[std::size_t(i)] == !g.nodes[std::size_t(i)].op->placeholder);
        CHECK(backward[std::size_t(i)] == r.wanted[std::size_t(i)]);
      }
      // An edge leads to a greater depth of its direction, so that no plan can wait for itself.
      for (const fl::task& t : r.tasks)
        for (int e : t.receives)
          for (const fl::task& s : r.tasks)
            for (int sent : s.sends)
              if (sent == e) CHECK(s.depth < t.depth);
    }
}
