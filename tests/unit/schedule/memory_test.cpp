// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/memory.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("parameters weigh 16 bytes on their owner, activations count once a slot") {
  const fl::cost_model costs = flat_costs(3, 10, {1, 1});
  const auto problem = problem_of<linears<3>>(costs, 8, {5, 1});
  const fl::step_profile f(problem);
  const fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {2}}, 8);
  const auto need = fl::memory_of(f, p, fl::compile(problem.graph, p));
  CHECK(need[0].parameters == 2 * (8 * 8 + 8) * 16);
  CHECK(need[2].parameters == (8 * 8 + 8) * 16);
  CHECK(need[1].total() == 0);
  const fl::u64 tensor = 5 * 8 * 4;
  CHECK(need[0].slots == 3);
  CHECK(need[2].slots == 1);
  CHECK(need[0].activations == 2 * tensor);  // outputs of both linears are read in backward
  CHECK(need[2].activations == 2 * tensor);  // its own linear's output for the loss, and the one that it received
  CHECK(need[0].total() == need[0].parameters + 3 * 2 * tensor + need[0].passing);
}

TEST_CASE("a second holder of a parameter has no optimizer state; GPipe holds every micro-batch") {
  const fl::cost_model costs = flat_costs(2, 10, {1, 1});
  auto problem = problem_of<linears<1>>(costs, 6);
  problem.groups = 2;
  problem.schedule = fl::schedule_kind::gpipe;
  const fl::step_profile f(problem);
  fl::plan p = plan_of({0, 0, 0, 0}, {{0, 1}}, 6, 2);
  p.schedule = problem.schedule;
  const auto need = fl::memory_of(f, p, fl::compile(problem.graph, p));
  CHECK(need[0].parameters == 72 * 16);
  CHECK(need[1].parameters == 72 * 8);
  CHECK(need[1].slots == 3);
}
