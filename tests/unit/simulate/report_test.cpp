// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/simulate/report.hpp>

#include "../schedule/planning_models.hpp"
#include "catch.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("a report names stages, peers, nodes, links, totals and notes") {
  const fl::cost_model costs = flat_costs(3, fl::millisecond, {20 * fl::millisecond, 1'000'000});
  const auto problem = problem_of<gpt<2, 16>>(costs, 4, {2, 4});
  fl::plan p;
  for (int i = 0; i < problem.graph.size(); ++i) p.stage_of.push_back(i > 6 && i < 15);
  p.peers = {{2}, {0}};
  p.micro_batches = 4;
  p.codecs = {{2, 0, "ada_top_k", 12.5}};
  p.notes = {"the best single device, peer 1, takes 1.000 s a step"};
  const std::string text = fl::describe(problem, p, fl::replay(problem, p));
  INFO(text);
  for (const char* part : {"plan by hand: 2 stages, 4 micro-batches of 2 x 4 in 1 group, 1f1b", "2 (site/2)", "2 embedding .. 6 ",
                           "15 ", "7 h.0", "2 -> 0", "ada_top_k 12.5", "8.0", "20.00", "predicted step ", "no schedule of it beats",
                           "note: the best single device"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("one stage has no links to show") {
  const fl::cost_model costs = flat_costs(1, fl::millisecond, {});
  const auto problem = problem_of<linears<2>>(costs, 1);
  const fl::plan p = plan_of({0, 0, 0, 0, 0}, {{0}});
  const std::string text = fl::describe(problem, p, fl::replay(problem, p));
  CHECK(text.find("link") == std::string::npos);
  CHECK(text.find("predicted step 0.006 s") != std::string::npos);
}
