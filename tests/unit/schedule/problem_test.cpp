// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/problem.hpp>

#include <limits>

#include "catch.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fusionllm_test::error_of;

TEST_CASE("codecs are those of the link, or of all links") {
  const fl::cost_model costs = flat_costs(3, 10, {1, 1});
  fl::planning_problem p = problem_of<linears<2>>(costs);
  p.codec = "a";
  p.ratio = 4;
  p.codecs = {{1, 2, "b", 9}};
  CHECK(p.codec_between(1, 2).codec == "b");
  CHECK(p.codec_between(1, 2).ratio == 9);
  CHECK(p.codec_between(2, 1).codec == "a");
  CHECK(p.codec_between(2, 1).ratio == 4);
}

TEST_CASE("what is no problem is refused with its reason") {
  const fl::cost_model costs = flat_costs(3, 10, {1, 1});
  const auto refused = [&](auto change) {
    fl::planning_problem p = problem_of<linears<2>>(costs, 4);
    change(p);
    return error_of([&] { fl::check(p); });
  };
  CHECK(refused([](auto&) {}).code == fl::errc::ok);
  CHECK(refused([](auto& p) { p.costs = nullptr; }).says(fl::errc::plan, "no cost model"));
  CHECK(refused([](auto& p) { p.graph = {}; }).says(fl::errc::plan, "no operator"));
  CHECK(refused([](auto& p) { p.micro_batch = {0, 1}; }).says(fl::errc::plan, "0 x 1"));
  CHECK(refused([](auto& p) { p.micro_batches = 0; }).says(fl::errc::plan, "micro_batches is 0"));
  CHECK(refused([](auto& p) { p.groups = 5; }).says(fl::errc::plan, "groups is 5"));
  CHECK(refused([](auto& p) { p.least_peers = 4; }).says(fl::errc::plan, "at least 4 peers", "3"));
  CHECK(refused([](auto& p) { p.ratio = std::numeric_limits<double>::quiet_NaN(); }).says(fl::errc::plan, "ratio"));
}
