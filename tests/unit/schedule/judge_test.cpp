// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/judge.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("the judge keeps the fastest plan that can run") {
  fl::cost_model costs = flat_costs(3, 10, {100, 1'000'000'000});
  set_speed(costs, 1, 4);
  costs.set_path(0, 2, {});
  const auto problem = problem_of<linears<3>>(costs);
  const fl::step_profile f(problem);
  fl::plan_judge judge(f);
  const auto single = [](int peer) { return plan_of(std::vector<int>(6, 0), {{peer}}); };
  CHECK(judge.consider(single(0)));
  CHECK(judge.best().predicted_step == 85);
  CHECK_FALSE(judge.consider(single(0)));  // shown before
  CHECK(judge.last() == 85);
  CHECK_FALSE(judge.consider(plan_of({0, 1, 0, 0, 1, 1}, {{0}, {2}})));
  CHECK(judge.last() == fl::never);
  CHECK(judge.first_obstacle().find("cannot reach") != std::string::npos);
  CHECK_FALSE(judge.consider(plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}})));
  CHECK(judge.last() > 85);
  CHECK(judge.consider(single(1)));
  CHECK(judge.best().peers.front().front() == 1);
}

TEST_CASE("plans over fewer peers than demanded are not looked at") {
  const fl::cost_model costs = flat_costs(2, 10, {100, 1'000'000'000});
  const auto problem = problem_of<linears<3>>(costs);
  const fl::step_profile f(problem);
  fl::plan_judge judge(f, 2);
  CHECK_FALSE(judge.consider(plan_of(std::vector<int>(6, 0), {{0}})));
  CHECK_FALSE(judge.found());
  CHECK(judge.consider(plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}})));
}
