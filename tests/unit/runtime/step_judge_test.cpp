// SPDX-License-Identifier: Apache-2.0
// What the leader makes of summaries: sums in one order whoever sent them, and which steps are skipped.
#include <fusionllm/runtime/step_judge.hpp>

#include <limits>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::u32;
using fl::u64;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

fl::step_judge judge_of(std::vector<int> members, fl::skip_settings skipping = {}, fl::optimizer_settings o = {}) {
  return fl::step_judge(std::move(members), 3, 4, o, skipping, {});
}
/// One member's step of a loss.
fl::step_verdict of_loss(fl::step_judge& j, double loss) {
  j.summary_of(0) = {{{0, 1.0}}, {{0, loss}}, {}};
  return j.judge();
}
fl::fault fault_at(fl::fault_kind kind, u32 micro_batch, u32 node) { return {kind, micro_batch, node, fl::fault::no, 0}; }

}  // namespace

TEST_CASE("a step is judged when every member's summary is there, and then the next one's are awaited") {
  auto j = judge_of({4, 1});
  CHECK(j.members() == std::vector<int>{4, 1});
  for (int step = 0; step < 2; ++step) {
    CHECK(!j.complete());
    j.summary_of(1) = {};
    CHECK(!j.has_summary(0));
    CHECK(j.has_summary(1));
    CHECK(!j.complete());
    j.summary_of(4) = {};
    CHECK(j.complete());
    j.judge();
  }
}

TEST_CASE("losses and squares are added by micro-batch and by parameter, whoever sends them in whatever order") {
  // Numbers whose sum depends on the order: 1e16 + 1 + 1 - 1e16 is 0 from the left and 2 in the best one.
  const fl::summand losses[] = {{0, 1e16}, {1, 1}, {2, 1}, {3, -1e16}};
  const fl::summand squares[] = {{0, 1e32}, {1, 1e16}, {2, 1e16}};
  const double loss = ((1e16 + 1) + 1) - 1e16, norm = std::sqrt((1e32 + 1e16) + 1e16);
  for (u32 who = 0; who < 16; ++who) {
    auto j = judge_of({0, 1});
    fl::step_summary s[2];
    for (int i = 3; i >= 0; --i) s[who >> i & 1].losses.push_back(losses[i]);
    for (int i = 2; i >= 0; --i) s[who >> i & 1].squares.push_back(squares[i]);
    for (int m : {1, 0}) j.summary_of(m) = s[m];
    const auto v = j.judge();
    CHECK(v.loss == loss);
    CHECK(v.gradient_norm == norm);
    CHECK(!v.skipped);
  }
}

TEST_CASE("nothing of one step is left in the next, and places that the model has not are ignored") {
  auto j = judge_of({0});
  j.summary_of(0) = {{{0, 9.0}, {2, 16.0}, {3, infinity}, {~u32(0), 1.0}}, {{1, 2.0}, {4, 100.0}}, {}};
  auto v = j.judge();
  CHECK(v.gradient_norm == 5);
  CHECK(v.loss == 2);
  CHECK(!v.skipped);
  j.summary_of(0) = {{{1, 4.0}}, {{3, 0.5}}, {}};
  v = j.judge();
  CHECK(v.gradient_norm == 2);
  CHECK(v.loss == 0.5);
}

TEST_CASE("the norm is clipped for everyone alike") {
  fl::optimizer_settings o;
  o.clip_norm = 1;
  auto j = judge_of({0}, {}, o);
  j.summary_of(0) = {{{0, 9.0}, {1, 16.0}}, {}, {}};
  CHECK(j.judge().gradient_scale == 1.0 / 5);
  j.summary_of(0) = {{{0, 0.25}}, {}, {}};
  CHECK(j.judge().gradient_scale == 1);
}

TEST_CASE("a step that is not finite anywhere is skipped, with the first fault that any member knows of") {
  const auto late = fault_at(fl::fault_kind::activation, 2, 1), early = fault_at(fl::fault_kind::cotangent, 1, 7);
  for (bool swapped : {false, true}) {
    auto j = judge_of({0, 1});
    j.summary_of(0).first = swapped ? early : late;
    j.summary_of(1).first = swapped ? late : early;
    const auto v = j.judge();
    CHECK(v.skipped);
    CHECK(v.reason == fl::skip_reason::not_finite);
    CHECK(v.first == early);
    CHECK(v.gradient_scale == 0);
    CHECK(j.history().skipped_in_row() == 1);
    j.summary_of(0) = {};
    j.summary_of(1) = {};
    CHECK(!j.judge().skipped);
    CHECK(j.history().skipped_in_row() == 0);
  }
  for (double bad : {infinity, -infinity, std::nan("")}) {
    auto j = judge_of({0});
    CHECK(of_loss(j, bad).reason == fl::skip_reason::not_finite);
    j.summary_of(0) = {{{1, bad}}, {}, {}};
    CHECK(j.judge().reason == fl::skip_reason::not_finite);
  }
  auto j = judge_of({0});  // each finite, their sum not
  j.summary_of(0) = {{{0, 1.5e308}, {1, 1.5e308}}, {}, {}};
  CHECK(j.judge().reason == fl::skip_reason::not_finite);
}

TEST_CASE("a spike is a loss above so many times the mean of the accepted ones before, once there are enough") {
  auto j = judge_of({0}, {0, 3});
  for (std::size_t i = 0; i < fl::loss_history::window; ++i) CHECK(!of_loss(j, i == 1 ? 100.0 : 1.0).skipped);
  const double mean = j.history().mean();
  CHECK(mean == (15 + 100) / 16.0);
  const auto v = of_loss(j, 3.01 * mean);
  CHECK(v.reason == fl::skip_reason::loss_spike);
  CHECK(v.mean_loss == mean);
  CHECK(!v.first);
  CHECK(j.history().mean() == mean);  // a skipped loss does not count
  CHECK(!of_loss(j, 3 * mean).skipped);
  auto other = judge_of({0}, {0, 3});
  other.set_history(j.history());
  CHECK(of_loss(other, 1000).reason == fl::skip_reason::loss_spike);
}
