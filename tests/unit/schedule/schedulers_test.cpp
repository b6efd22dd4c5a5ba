// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/schedulers.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("the built-in schedulers answer to their names, OP-Fence first") {
  CHECK(fl::built_in_schedulers::names() == std::vector<std::string>{"op_fence", "equal_number", "equal_compute", "best_single"});
  const fl::cost_model costs = flat_costs(3, fl::millisecond, {1'000, 10'000'000'000});
  const auto problem = problem_of<linears<8>>(costs, 6);
  CHECK(fl::built_in_schedulers::make("", problem).scheduler == "op_fence");
  const fl::nanoseconds best = fl::built_in_schedulers::make("op_fence", problem).predicted_step;
  for (const auto& name : fl::built_in_schedulers::names()) {
    const fl::plan p = fl::built_in_schedulers::make(name, problem);
    CHECK(p.scheduler == name);
    CHECK(p.predicted_step >= best);
  }
}
