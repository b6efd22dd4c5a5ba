// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/chain_plan.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("stages in a chain: inputs where they are read, codecs on links that carry tensors") {
  const fl::cost_model costs = flat_costs(4, 10, {1, 1});
  auto problem = problem_of<linears<3>>(costs, 4);
  problem.codec = "any";
  problem.ratio = 5;
  problem.codecs = {{3, 1, "none", 1}};
  const fl::step_profile f(problem);
  const fl::plan p = fl::chain_plan(f, {{3}, {1}, {0}}, {0, 1, 3, 4});
  fl::check(p, problem.graph, 4);
  CHECK(p.stage_of == std::vector<int>{0, 2, 0, 1, 1, 2});
  CHECK(p.micro_batches == 4);
  REQUIRE(p.codecs.size() == 3);
  for (const auto& c : p.codecs) {
    CHECK_FALSE((c.from == 3 && c.to == 1));
    CHECK(c.codec == "any");
    CHECK(c.ratio == 5);
  }
}

TEST_CASE("what follows the last stage goes to the first one") {
  const fl::cost_model costs = flat_costs(2, 10, {1, 1});
  const auto problem = problem_of<linears<3>>(costs);
  const fl::step_profile f(problem);
  const fl::plan p = fl::chain_plan(f, {{0}, {1}}, {0, 1, 3});
  CHECK(p.stage_of == std::vector<int>{0, 0, 0, 1, 1, 0});
}
