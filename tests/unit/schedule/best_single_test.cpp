// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/best_single.hpp>

#include "catch.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("the fastest device that has the memory") {
  fl::cluster machines = flat_costs(3, 10, {1, 1}).machines();
  machines.peers[2].memory_bytes = 100;
  fl::cost_model costs(machines);
  for (int i = 0; i < 3; ++i) set_speed(costs, i, 30 - 10 * i);
  const auto problem = problem_of<linears<3>>(costs, 2);
  const fl::plan p = fl::best_single{}(problem);
  fl::check(p, problem.graph, 3);
  CHECK(p.peers == std::vector<std::vector<int>>{{1}});
  CHECK(p.predicted_step == fl::predict_step(problem, p));
  for (auto& m : machines.peers) m.memory_bytes = 100;
  const fl::cost_model none(machines);
  const auto hopeless = problem_of<linears<3>>(none);
  CHECK(fusionllm_test::error_of([&] { fl::best_single{}(hopeless); }).says(fl::errc::plan, "no single device", "100 bytes"));
}
