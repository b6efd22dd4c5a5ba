// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/scheduler.hpp>

#include "catch.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fusionllm_test::error_of;

namespace {

struct on_first {
  using seat = fl::scheduler_seat;
  static constexpr std::string_view name = "on_first";
  fl::plan operator()(const fl::planning_problem& p) const {
    return plan_of(std::vector<int>(p.graph.nodes.size(), 0), {{0}}, p.micro_batches, p.groups);
  }
};
struct on_nothing : on_first {
  static constexpr std::string_view name = "on_nothing";
  fl::plan operator()(const fl::planning_problem&) const { return {}; }
};
struct nameless {
  using seat = fl::scheduler_seat;
  fl::plan operator()(const fl::planning_problem&) const { return {}; }
};
struct other_seat : on_first {
  using seat = int;
};

static_assert(fl::scheduler<on_first>);
static_assert(!fl::scheduler<nameless> && !fl::scheduler<other_seat>);

}  // namespace

TEST_CASE("a list of schedulers chooses by name, the first is the default") {
  using list = fl::schedulers<on_first, on_nothing>;
  const fl::cost_model costs = flat_costs(2, 10, {1, 1});
  const auto problem = problem_of<linears<2>>(costs, 3);
  CHECK(list::names() == std::vector<std::string>{"on_first", "on_nothing"});
  CHECK(list::make("", problem).scheduler == "on_first");
  CHECK(list::make("on_first", problem).micro_batches == 3);
  CHECK(error_of([&] { list::make("op_fance", problem); }).says(fl::errc::config, "op_fance", "on_first, on_nothing"));
}

TEST_CASE("a plan that does not fit is the scheduler's error") {
  const fl::cost_model costs = flat_costs(2, 10, {1, 1});
  const auto problem = problem_of<linears<2>>(costs);
  CHECK(error_of([&] { fl::schedulers<on_nothing>::make("", problem); }).says(fl::errc::plan, "0 nodes"));
}
