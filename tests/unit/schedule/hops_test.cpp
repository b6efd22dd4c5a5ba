// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/hops.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("a hop is as busy as its busier direction and takes both transfers") {
  fl::cost_model costs = flat_costs(3, 10, {100, 1'000'000'000});
  costs.set_path(1, 0, {30, 500'000'000});
  costs.set_path(0, 2, {});
  auto problem = problem_of<linears<3>>(costs);
  problem.codecs = {{1, 2, "any", 4}};
  const fl::step_profile f(problem);
  const std::vector<int> positions{0, 2, 4};
  fl::hop_table h(f, positions);
  CHECK(h.busy(h.of(0, 1), 1) == 64);
  CHECK(h.span(h.of(0, 1), 1) == (100 + 32) + (30 + 64));
  CHECK(h.busy(h.of(1, 2), 1) == 32);  // 8 encoded there, 32 raw back
  CHECK(h.span(h.of(1, 2), 1) == 108 + 132);
  CHECK(h.busy(h.of(2, 0), 1) == fl::never);
  CHECK(h.span(h.of(0, 2), 1) == fl::never);
  CHECK(h.busy(h.of(0, 2), 0) == 0);  // nothing crosses the ends
  CHECK(h.of(0, 1) != h.of(1, 0));
}

TEST_CASE("pairs that are joined alike are one class") {
  const fl::cost_model costs = flat_costs(4, 10, {100, 1'000});
  const auto problem = problem_of<linears<3>>(costs);
  const fl::step_profile f(problem);
  const std::vector<int> positions{0, 1, 4};
  fl::hop_table h(f, positions);
  CHECK(h.of(0, 1) == h.of(3, 2));
  CHECK(h.all_busy().size() == 3);
}
