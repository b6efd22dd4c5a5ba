// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/equal.hpp>

#include "catch.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;

namespace {

std::vector<int> operators_of(const fl::planning_problem& problem, const fl::plan& p) {
  std::vector<int> r(p.peers.size());
  for (std::size_t i = 0; i < problem.graph.nodes.size(); ++i)
    if (!problem.graph.nodes[i].op->placeholder) ++r[std::size_t(p.stage_of[i])];
  return r;
}

}  // namespace

TEST_CASE("equal numbers of operators, in the order of peers") {
  const fl::cost_model costs = flat_costs(4, 10, {1, 1'000'000'000});
  const auto problem = problem_of<linears<11>>(costs, 4);
  const fl::plan p = fl::equal_number{}(problem);
  fl::check(p, problem.graph, 4);
  CHECK(operators_of(problem, p) == std::vector<int>{3, 3, 3, 3});
  CHECK(p.peers == std::vector<std::vector<int>>{{0}, {1}, {2}, {3}});
  CHECK(p.predicted_step > 0);
}

TEST_CASE("equal times: twice as fast has twice as many") {
  fl::cost_model costs = flat_costs(3, 40, {1, 1'000'000'000});
  set_speed(costs, 1, 20);
  set_speed(costs, 2, 10);
  const auto problem = problem_of<linears<13>>(costs, 4);
  CHECK(operators_of(problem, fl::equal_compute{}(problem)) == std::vector<int>{2, 4, 8});
}

TEST_CASE("fewer operators than peers, and peers that cannot be reached") {
  const fl::cost_model costs = flat_costs(5, 10, {1, 1'000'000'000});
  const auto problem = problem_of<linears<2>>(costs, 1);
  for (const fl::plan& p : {fl::equal_number{}(problem), fl::equal_compute{}(problem)}) {
    fl::check(p, problem.graph, 5);
    CHECK(p.stages() == 3);
  }
  fl::cost_model islands = flat_costs(3, 10, {1, 1'000'000'000});
  islands.set_path(1, 0, {});
  const auto apart = problem_of<linears<5>>(islands);
  const fl::plan p = fl::equal_number{}(apart);
  CHECK(p.peers == std::vector<std::vector<int>>{{0}, {2}});
  REQUIRE(p.notes.size() == 1);
  CHECK(p.notes[0].find("passed over peer 1") != std::string::npos);
}

TEST_CASE("memory that is missing is said") {
  const fl::cost_model costs = flat_costs(2, 10, {1, 1'000'000'000}, 300);
  const auto problem = problem_of<linears<5>>(costs);
  CHECK(fusionllm_test::error_of([&] { fl::equal_number{}(problem); }).says(fl::errc::plan, "300 bytes"));
  CHECK(fusionllm_test::error_of([&] { fl::equal_compute{}(problem); }).says(fl::errc::plan, "300 bytes"));
}
