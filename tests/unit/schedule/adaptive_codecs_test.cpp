// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/adaptive_codecs.hpp>

#include <limits>

#include "catch.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;

namespace {

const fl::plan three_stages = plan_of({0, 2, 0, 0, 1, 1, 2, 2}, {{0}, {1}, {2}}, 8);

const fl::link_codec* find(const std::vector<fl::link_codec>& v, int from, int to) {
  for (const auto& c : v)
    if (c.from == from && c.to == to) return &c;
  return nullptr;
}

}  // namespace

TEST_CASE("quick links stay raw, slow ones get the ratio they need, each direction its own") {
  fl::cost_model costs = flat_costs(3, fl::millisecond, {1'000, 1'000'000'000});
  costs.set_path(1, 2, {1'000, 4'000});   // 64 raw bytes take 16 ms
  costs.set_path(2, 1, {1'000, 12'000});
  const auto problem = problem_of<linears<5>>(costs, 8, {2, 1});
  const fl::step_profile f(problem);
  const auto codecs = fl::adaptive_codecs(f, three_stages, "any", 32);
  CHECK(find(codecs, 0, 1) == nullptr);
  CHECK(find(codecs, 1, 0) == nullptr);
  REQUIRE(find(codecs, 1, 2));
  REQUIRE(find(codecs, 2, 1));
  CHECK(find(codecs, 1, 2)->ratio <= 32);
  CHECK(find(codecs, 1, 2)->ratio > find(codecs, 2, 1)->ratio);
  CHECK(find(codecs, 2, 1)->ratio > 1);
}

TEST_CASE("a step with these ratios takes hardly longer than with the full ratio everywhere") {
  for (fl::u64 rate : {1'000u, 3'000u, 10'000u, 100'000u}) {
    fl::cost_model costs = flat_costs(3, fl::millisecond, {2 * fl::millisecond, rate});
    const auto problem = problem_of<linears<5>>(costs, 8, {4, 1});
    const fl::step_profile f(problem);
    fl::plan full = three_stages, adapted = three_stages;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        if (a != b) full.codecs.push_back({a, b, "any", 16});
    adapted.codecs = fl::adaptive_codecs(f, three_stages, "any", 16);
    const fl::nanoseconds least = fl::predict_step(f, full);
    CHECK(fl::predict_step(f, adapted) <= least + least / 100 * 5 + 1);
    for (const auto& c : adapted.codecs) CHECK(c.ratio <= 16);
  }
}

TEST_CASE("no ratio, one stage, and ratios that are none") {
  const fl::cost_model costs = flat_costs(3, fl::millisecond, {1'000, 100});
  const auto problem = problem_of<linears<5>>(costs, 8);
  const fl::step_profile f(problem);
  CHECK(fl::adaptive_codecs(f, three_stages, "any", 1).empty());
  CHECK(fl::adaptive_codecs(f, plan_of(std::vector<int>(8, 0), {{0}}, 8), "any", 9).empty());
  for (double bad : {-1.0, 1e7, std::numeric_limits<double>::quiet_NaN()})
    CHECK(fusionllm_test::error_of([&] { fl::adaptive_codecs(f, three_stages, "any", bad); }).says(fl::errc::plan, "ratio"));
}
