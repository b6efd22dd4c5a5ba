// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/predict.hpp>

#include "catch.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fusionllm_test::error_of;

TEST_CASE("a step is predicted as it is replayed") {
  const fl::cost_model costs = flat_costs(2, 10, {100, 1'000'000'000});
  CHECK(fl::predict_step(problem_of<linears<3>>(costs), plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}})) == 637);
}

TEST_CASE("memory that is missing is an obstacle with both amounts") {
  const fl::cost_model costs = flat_costs(2, 10, {1, 1}, 1000);
  const auto problem = problem_of<linears<3>>(costs);
  const auto e = error_of([&] { fl::predict_step(problem, plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}})); });
  CHECK(e.says(fl::errc::plan, "peer 0 (site/0)", "need", "it has 1000 bytes"));
}

TEST_CASE("a link that is closed in any direction that is needed is an obstacle") {
  const fl::plan tensors = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}});
  for (auto [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
    fl::cost_model costs = flat_costs(3, 10, {1, 1});
    costs.set_path(from, to, {});
    const auto problem = problem_of<linears<3>>(costs);
    const auto e = error_of([&] { fl::predict_step(problem, tensors); });
    CHECK(e.says(fl::errc::plan, "peer " + std::to_string(from), "cannot reach peer " + std::to_string(to), "tensors"));
    CHECK(error_of([&] { fl::predict_step(problem, plan_of({0, 1, 0, 0, 1, 1}, {{0}, {2}})); }).code == fl::errc::ok);
  }
  // Replicas exchange gradients, and everyone talks to the leader.
  fl::cost_model costs = flat_costs(3, 10, {1, 1});
  costs.set_path(0, 1, {});
  auto problem = problem_of<linears<1>>(costs, 2);
  problem.groups = 2;
  CHECK(error_of([&] { fl::predict_step(problem, plan_of({0, 0, 0, 0}, {{0, 1}}, 2, 2)); }).says(fl::errc::plan, "cannot reach"));
  costs = flat_costs(3, 10, {1, 1});
  costs.set_path(2, 0, {});
  const auto three = problem_of<linears<3>>(costs);
  CHECK(error_of([&] { fl::predict_step(three, plan_of({2, 0, 0, 1, 1, 2}, {{0}, {1}, {2}})); }).says(fl::errc::plan, "peer 2", "peer 0", "how to update"));
}

TEST_CASE("a plan of another model is refused") {
  const fl::cost_model costs = flat_costs(2, 10, {1, 1});
  CHECK(error_of([&] { fl::predict_step(problem_of<linears<2>>(costs), plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}})); })
            .says(fl::errc::plan, "6 nodes", "5"));
}
