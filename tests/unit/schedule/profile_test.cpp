// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/profile.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fl::direction;

TEST_CASE("operators have positions, inputs have none") {
  const fl::cost_model costs = flat_costs(2, 10, {1, 1});
  const auto problem = problem_of<linears<3>>(costs, 1, {5, 1});
  const fl::step_profile f(problem);
  CHECK(f.order() == std::vector<int>{2, 3, 4, 5});
  CHECK(f.time(1, 3, direction::forward) == 10);
  CHECK(f.both(1, 3) == 20);
  CHECK(f.crossing(0).empty());
  CHECK(f.crossing(2) == std::vector<int>{3});
  CHECK(f.crossing(4).empty());
  CHECK(f.cut_bytes(2, {0, 1, "none", 1}) == 5 * 8 * 4);
  CHECK(f.cut_bytes(2, {0, 1, "any", 4}) == 5 * 8);
  CHECK(f.legal_cut(2));
}

TEST_CASE("operators that do not reach the loss have no backward") {
  const fl::cost_model costs = flat_costs(1, 10, {1, 1});
  const auto problem = problem_of<two_islands>(costs);
  const fl::step_profile f(problem);
  const int aside = f.graph().outputs[0].node;
  CHECK(f.time(0, aside, direction::backward) == 0);
  CHECK(f.both(0, aside) == 10);
  CHECK(f.kept_bytes(aside) == 0);
}

TEST_CASE("a residual makes a cut within a block carry two tensors, between blocks one") {
  const fl::cost_model costs = flat_costs(1, 10, {1, 1});
  const auto problem = problem_of<gpt<2, 16>>(costs, 1, {1, 4});
  const fl::step_profile f(problem);
  std::vector<std::size_t> crossing;
  for (std::size_t p = 1; p < f.order().size(); ++p) crossing.push_back(f.crossing(int(p)).size());
  CHECK(crossing[0] == 1);                        // after the embedding
  CHECK(std::count(crossing.begin(), crossing.end(), 2u) == 2 * 8);
  CHECK(*std::max_element(crossing.begin(), crossing.end()) == 2);
}

TEST_CASE("what is kept for backward agrees with the graph's live ranges") {
  const fl::cost_model costs = flat_costs(1, 10, {1, 1});
  const auto problem = problem_of<gpt<1, 16>>(costs);
  const fl::step_profile f(problem);
  for (int i : f.order()) CHECK(f.kept(i) == fl::kept_for_backward(f.graph(), i, f.wanted()));
}

namespace {

struct whole_numbers_op : fl::operator_base {
  static constexpr std::string_view name = "whole_numbers";
  static constexpr unsigned differentiable = 0;
};
struct cut_through_integers {
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto wte = fl::parameter<7, 8>(g, "wte");
    auto shifted = fl::record<whole_numbers_op, fl::i32, fl::shape<fl::batch, fl::time>>(&g, fl::from(tokens.id));
    auto y = fl::input<fl::real, fl::batch, fl::time, 8>(g, "y");
    return fl::mean_squared_error(fl::embedding(shifted, wte), y);
  }
};

}  // namespace

TEST_CASE("only real tensors may cross a cut") {
  const fl::cost_model costs = flat_costs(1, 10, {1, 1});
  const auto problem = problem_of<cut_through_integers>(costs);
  const fl::step_profile f(problem);
  REQUIRE(f.order().size() == 3);
  CHECK(f.legal_cut(0));
  CHECK_FALSE(f.legal_cut(1));
  CHECK(f.legal_cut(2));
}
