// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/chain.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("the chain says loads, memory and hops of teams in an order") {
  fl::cost_model costs = flat_costs(3, 10, {100, 1'000'000'000}, 5000);
  set_speed(costs, 2, 40);
  auto problem = problem_of<linears<3>>(costs, 8);
  problem.groups = 2;
  const fl::step_profile f(problem);
  fl::chain c(f);
  CHECK(c.positions() == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(c.whole_load(0) == 80);
  const auto p = c.problem_of({{1}, {0, 2}});
  CHECK(p.cuts == 5);
  CHECK(p.devices == 2);
  CHECK(std::vector<fl::i64>(p.load.begin(), p.load.begin() + 5) == std::vector<fl::i64>{0, 20, 40, 60, 80});
  CHECK(p.load[5 + 4] == 320);  // the slower one of the team
  CHECK(p.share == std::vector<int>{1, 2});
  CHECK(p.room == std::vector<fl::i64>{5000, 5000});
  CHECK(p.fixed_bytes == std::vector<fl::i64>{0, 1152, 2304, 3456, 3456});
  CHECK(p.slot_bytes == std::vector<fl::i64>{0, 32, 64, 96, 96});
  CHECK(p.slots == 3);
  CHECK(p.hop_busy[std::size_t(p.hop[1]) * 5 + 2] == 32);
}

TEST_CASE("teams that are alike are of one kind, others are not") {
  fl::cost_model costs = flat_costs(4, 10, {100, 1'000});
  costs.set_path(0, 3, {5, 5});
  const auto problem = problem_of<linears<3>>(costs);
  const fl::step_profile f(problem);
  fl::chain c(f);
  const auto p = c.problem_of({{0}, {1}, {2}, {3}});
  CHECK(p.kind == std::vector<int>{0, 1, 1, 2});
}

TEST_CASE("long graphs keep cuts that carry least, short ones all") {
  const fl::cost_model costs = flat_costs(2, 10, {100, 1'000});
  const auto problem = problem_of<gpt<4, 16>>(costs, 1, {1, 4});
  const fl::step_profile f(problem);
  const fl::chain all(f), few(f, 20);
  CHECK(all.positions().size() == f.order().size() + 1);
  CHECK(few.positions().size() < 16);
  for (int p : few.positions()) CHECK(f.crossing(p).size() <= 1);
}

TEST_CASE("a partition becomes a plan of the teams that it uses") {
  const fl::cost_model costs = flat_costs(3, 10, {1, 1});
  const auto problem = problem_of<linears<3>>(costs);
  const fl::step_profile f(problem);
  const fl::chain c(f);
  fl::partition x;
  x.found = true;
  x.device = {0, 2};
  x.begin = {0, 1, 4};
  const fl::plan p = c.plan_of(x, {{2}, {1}, {0}});
  CHECK(p.peers == std::vector<std::vector<int>>{{2}, {0}});
  CHECK(p.stage_of == std::vector<int>{0, 1, 0, 1, 1, 1});
}
