// SPDX-License-Identifier: Apache-2.0
// Case C03 in whole runs: an infinity at stage 2 of 3, resuming around a skipped step, and the end after too many.
#include <fusionllm/cluster/peer.hpp>

#include <limits>

#include "catch.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

/// Puts an infinity into an operator of peer 1 in the steps from `first` up to `last`. Its engine must be there.
void harm(virtual_cluster& c, int node, u64 first, u64 last) {
  fl::engine& e = *c.at(1).it->the_engine();
  e.compute().observe([&e, node, first, last](int n, int micro_batch, bool backward, const fl::tensor_ref& t) {
    if (n == node && micro_batch == 2 && !backward && e.next_step() >= first && e.next_step() <= last)
      t.as<float>()[1] = std::numeric_limits<float>::infinity();
  });
}
void until_engines(virtual_cluster& c) {
  c.time().run_while([&] { return c.size() < 2 || !c.at(1).it->the_engine(); }, 50 * fl::second);
  REQUIRE(c.at(1).it->the_engine());
}
int node_of_stage_1(const virtual_cluster& c) {
  for (int i = 4; i < int(c.planned.stage_of.size()); ++i)
    if (c.planned.stage_of[std::size_t(i)] == 1) return i;
  return -1;
}

struct result {
  std::vector<double> losses;
  std::vector<u64> skipped;
  std::vector<saved_state> states;
};
result run(const fl::cluster_settings& s, u64 first, u64 last, const saved_state* from = nullptr) {
  virtual_cluster c(s, 3, from);
  c.join_all();
  until_engines(c);
  harm(c, node_of_stage_1(c), first, last);
  REQUIRE(c.run());
  INFO(c.why.what());
  CHECK(c.why.code() == fl::errc::ok);
  result r;
  for (const auto& x : c.steps) {
    r.losses.push_back(x.loss);
    if (!x.skipped) continue;
    r.skipped.push_back(x.step);
    CHECK(x.reason.find("the activation of ") == 0);
    CHECK(x.reason.find("micro-batch 2, stage 1 on 'peer1' is not finite") != std::string::npos);
  }
  r.states = c.states;
  return r;
}

}  // namespace

TEST_CASE("an infinity at stage 2 of 3 in step 5: all skip it, none blocks, and the report names it") {
  const result r = run(small_run(3), 5, 5);
  CHECK(r.skipped == std::vector<u64>{6});  // counted from 1
  CHECK(r.losses.size() == 20);
}

TEST_CASE("a run resumed before, at or after a skipped step gives the same bits") {
  auto s = small_run(3);
  s.skipping.spike_factor = 1000;
  const result whole = run(s, 5, 5);
  for (u64 interval : {5, 6, 7}) {
    auto first = s;
    first.steps = 10;
    first.checkpoint_interval = interval;
    const result half = run(first, 5, 5);
    const saved_state& from = half.states.front();
    REQUIRE(from.step == interval);
    CHECK(from.history.skipped_in_row() == (interval == 6 ? 1 : 0));
    const result rest = run(s, 5, 5, &from);
    CHECK(rest.states.back() == whole.states.back());
    CHECK(std::equal(rest.losses.begin() + (interval == 5), rest.losses.end(), whole.losses.begin() + long(interval) + (interval == 5)));
    CHECK(rest.skipped.size() == (interval == 5 ? 1u : 0u));
  }
}

TEST_CASE("too many skipped steps in a row end the run on every peer with its own code; the last state stays") {
  auto s = small_run(3);
  s.skipping.most_in_row = 3;
  s.checkpoint_interval = 4;
  virtual_cluster c(s);
  c.join_all();
  until_engines(c);
  harm(c, node_of_stage_1(c), 5, 100);
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::diverged);
  CHECK(std::string(c.why.what()).find("3 steps in a row were skipped, the last of them step 8 because the activation of") == 0);
  for (int i = 0; i < 3; ++i) CHECK(c.at(i).why.code() == fl::errc::diverged);
  REQUIRE(!c.states.empty());
  CHECK(c.states.front().step == 4);
  CHECK(c.steps.back().step == 8);
  s.skipping.most_in_row = 4;  // three bad ones are fewer
  virtual_cluster good(s);
  good.join_all();
  until_engines(good);
  harm(good, node_of_stage_1(good), 5, 7);
  REQUIRE(good.run());
  CHECK(good.why.code() == fl::errc::ok);
}

TEST_CASE("the count of skipped steps goes on in a resumed run") {
  auto s = small_run(3);
  s.skipping.most_in_row = 3;
  s.steps = 7;
  saved_state from;
  {
    virtual_cluster c(s);
    c.join_all();
    until_engines(c);
    harm(c, node_of_stage_1(c), 5, 100);
    REQUIRE(c.run());
    REQUIRE(c.why.code() == fl::errc::ok);
    from = c.states.back();
  }
  CHECK(from.history.skipped_in_row() == 2);
  s.steps = 20;
  virtual_cluster c(s, 1, &from);
  c.join_all();
  until_engines(c);
  harm(c, node_of_stage_1(c), 5, 100);
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::diverged);
  CHECK(c.steps.size() == 1);
}

TEST_CASE("recomputation over peers: the same losses and weights as without, and a plan that knows it takes longer") {
  const result none = run(small_run(3), 100, 0);
  for (auto policy : {fl::recompute_policy::block, fl::recompute_policy::selective}) {
    auto s = small_run(3);
    s.recompute = policy;
    const result r = run(s, 100, 0);
    CHECK(r.losses == none.losses);
    CHECK(r.states.back() == none.states.back());
  }
}
