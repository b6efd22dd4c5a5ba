// SPDX-License-Identifier: Apache-2.0
// Whole runs on virtual time: equal to engines without a network, repeatable, resumable, stoppable.
#include <fusionllm/cluster/broker.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

// Losses and final state of a finished run.
struct result {
  std::vector<double> losses;
  saved_state state;
  bool operator==(const result&) const = default;
};
result finish(virtual_cluster& c) {
  const bool ended = c.run();
  INFO("broker: " << c.why.what());
  REQUIRE(ended);
  CHECK(c.why.code() == fl::errc::ok);
  CHECK(c.broker_ends == 1);
  for (int i = 0; i < c.size(); ++i) {
    INFO(c.at(i).name << ": " << c.at(i).why.what());
    CHECK(c.at(i).why.code() == fl::errc::ok);
    CHECK(c.at(i).ends == 1);
  }
  result r;
  for (const auto& s : c.steps) r.losses.push_back(s.loss);
  REQUIRE(!c.states.empty());
  r.state = c.states.back();
  return r;
}
result whole_run(const fl::cluster_settings& s, u64 seed = 1, const saved_state* from = nullptr) {
  virtual_cluster c(s, seed, from);
  c.join_all();
  return finish(c);
}

}  // namespace

TEST_CASE("a run over 1, 2, 3 and 4 peers gives the bits of one engine") {
  engine_group<case_gpt, fl::reference<float>> one(chain_plan(fl::graph_of<case_gpt>().size(), {{0}}), [] {
    group_options o;
    o.optimizer = lively_optimizer();
    return o;
  }());
  one.train(20);
  const auto expected = one.weights();
  for (int peers : {1, 2, 3, 4}) {
    const result r = whole_run(small_run(peers), u64(peers));
    CHECK(r.losses == one.losses);
    CHECK(r.state.step == 20);
    for (std::size_t p = 0; p < one.graph().params.size(); ++p)
      CHECK(r.state.parts[3 * p] == expected.at(std::string(one.graph().params[p].path.view())));
  }
}

TEST_CASE("10 steps and 10 more from the saved state are 20 steps, also over another number of peers") {
  const result whole = whole_run(small_run(3));
  const result half = whole_run(small_run(3, 10));
  CHECK(std::equal(half.losses.begin(), half.losses.end(), whole.losses.begin()));
  for (int peers : {3, 1, 2, 4}) {
    const result rest = whole_run(small_run(peers), 5, &half.state);
    CHECK(rest.state == whole.state);
    REQUIRE(rest.losses.size() == 10);
    CHECK(std::equal(rest.losses.begin(), rest.losses.end(), whole.losses.begin() + 10));
  }
}

TEST_CASE("a compressed run resumes to the bit over the same links") {
  for (const char* codec : {"ada_top_k", "uniform_top_k", "int8"}) {
    auto s = small_run(3, 10);
    s.codec = codec;
    const result half = whole_run(s);
    s.steps = 20;
    const result whole = whole_run(s);
    INFO(codec);
    CHECK(whole_run(s, 9, &half.state) == result{{whole.losses.begin() + 10, whole.losses.end()}, whole.state});
    if (codec != std::string("ada_top_k")) CHECK(whole.losses != whole_run(small_run(3)).losses);
  }
}

TEST_CASE("resuming at step 0 takes the saved state, resuming after the last step gives it back") {
  auto s = small_run(2, 0);
  const result initial = whole_run(s);
  CHECK(initial.losses.empty());
  CHECK(initial.state.step == 0);
  s.steps = 6;
  const result whole = whole_run(s);
  CHECK(whole_run(s, 2, &initial.state) == whole);
  s.seed = 99;  // other initial weights, which the state replaces; other dropout too
  const result other = whole_run(s);
  CHECK(other.losses[0] != whole_run(s, 2, &initial.state).losses[0]);
  s.seed = 7;
  const result after = whole_run(s, 3, &whole.state);
  CHECK(after.losses.empty());
  CHECK(after.state == whole.state);
  s.steps = 5;
  CHECK(error_of([&] { virtual_cluster(s, 1, &whole.state); }).says(fl::errc::config, "steps 5", "6 steps that are done"));
}

TEST_CASE("state is collected at every interval and at the end, and does not change the run") {
  auto s = small_run(3);
  const result plain = whole_run(s);
  s.checkpoint_interval = 6;
  virtual_cluster c(s);
  c.join_all();
  CHECK(finish(c) == plain);
  REQUIRE(c.states.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(c.states[i].step == std::vector<u64>{6, 12, 18, 20}[i]);
  CHECK(whole_run(s, 4, &c.states[1]).state == plain.state);
}

TEST_CASE("a run that is asked to stop ends after the granted steps, with their state") {
  const result whole = whole_run(small_run(3));
  virtual_cluster c(small_run(3));
  c.join_all();
  c.run_to_step(5);
  c.broker().request_stop();
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::interrupted);
  REQUIRE(c.states.size() == 1);
  const u64 step = c.states[0].step;
  CHECK(step >= 5);
  CHECK(step <= 9);
  CHECK(c.steps.size() == step);
  for (int i = 0; i < 3; ++i) CHECK(c.at(i).why.code() == fl::errc::ok);
  CHECK(whole_run(small_run(3), 8, &c.states[0]).state == whole.state);

  virtual_cluster early(small_run(3));
  early.join(0);
  early.time().run_until(fl::second);
  early.broker().request_stop();
  REQUIRE(early.run());
  CHECK(early.why.code() == fl::errc::interrupted);
  CHECK(early.at(0).why.code() == fl::errc::interrupted);
}

TEST_CASE("a peer that is asked to stop asks the broker: the run ends after the granted steps, with their state") {
  const result whole = whole_run(small_run(3));
  virtual_cluster c(small_run(3));
  c.join_all();
  c.run_to_step(5);
  c.at(1).it->request_stop();
  c.at(1).it->request_stop();
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::interrupted);
  REQUIRE(c.states.size() == 1);
  CHECK(c.states[0].step >= 5);
  CHECK(c.states[0].step <= 13);
  for (int i = 0; i < 3; ++i) CHECK(c.at(i).why.code() == (i == 1 ? fl::errc::interrupted : fl::errc::ok));
  CHECK(whole_run(small_run(3), 8, &c.states[0]).state == whole.state);

  virtual_cluster early(small_run(3));
  early.join(0);
  early.time().run_until(fl::second);
  early.at(0).it->request_stop();
  early.time().run_until(2 * fl::second);
  CHECK(early.at(0).why.code() == fl::errc::interrupted);
  CHECK(early.broker_ends == 0);  // it may come again
}

TEST_CASE("a run replays from its seed to the event; another seed is another order and the same bits") {
  const auto once = [](u64 seed) {
    virtual_cluster c(small_run(3, 6), seed);
    c.join_all();
    const result r = finish(c);
    std::vector<fl::nanoseconds> times;
    for (const auto& s : c.steps) times.push_back(s.elapsed);
    return std::tuple(r, c.time().events(), c.ended_at, times);
  };
  const auto a = once(1);
  CHECK(once(1) == a);
  const auto b = once(2);
  CHECK(std::get<2>(b) != std::get<2>(a));
  CHECK(std::get<0>(b) == std::get<0>(a));
}

TEST_CASE("peers that a given plan leaves out rest and end with the others") {
  auto s = small_run(4, 6);
  s.given_plan = chain_plan(fl::graph_of<case_gpt>().size(), {{2}, {0}});
  const result r = whole_run(s);
  CHECK(r == whole_run(small_run(1, 6)));
}

TEST_CASE("replicas in a plan give the same bits, and links report what they carried") {
  auto s = small_run(3, 6);
  s.given_plan = chain_plan(fl::graph_of<case_gpt>().size(), {{1, 2}, {0}});
  virtual_cluster c(s);
  c.join_all();
  CHECK(finish(c) == whole_run(small_run(1, 6)));
  for (const auto& step : c.steps) {
    CHECK(step.links.size() == 6);
    for (const auto& l : step.links) {
      CHECK(l.from != l.to);
      CHECK(l.messages > 0);
      CHECK(l.encoded > 0);
      CHECK(l.busy > 0);
    }
    CHECK(step.elapsed > 0);
    CHECK(step.learning_rate > 0);
  }
}

TEST_CASE("devices that no topology describes are measured, then planned for") {
  auto s = small_run(3, 4);
  s.machines.reset();
  s.emulate = false;
  virtual_cluster c(s);
  c.join_all();
  CHECK(finish(c) == whole_run(small_run(1, 4)));
  for (const auto& step : c.steps) {  // what was measured with is not the first step's
    REQUIRE(!step.links.empty());
    for (const auto& l : step.links) CHECK(l.wire < l.encoded + 100 * (l.messages + 20));
  }
  CHECK(std::count(c.texts.begin(), c.texts.end(), "measuring devices and links") == 1);
}

TEST_CASE("state is collected when the one before is saved, however long that takes, and the run is the same") {
  auto s = small_run(2, 9);
  const result plain = whole_run(s);
  s.checkpoint_interval = 3;
  virtual_cluster c(s);
  c.join_all();
  c.run_to_step(2);
  c.saving_until = c.time().now() + 30 * fl::second;  // longer than a peer may be silent, or a step take
  CHECK(finish(c) == plain);
  CHECK(c.ended_at >= c.saving_until);
  CHECK(c.states.size() == 3);
}

TEST_CASE("peers that do not compute alike are told of once; where the same bits are insisted on they are refused") {
  for (bool strict : {false, true}) {
    auto s = small_run(3, 4);
    s.strict_bits = strict;
    virtual_cluster c(s);
    c.join(0);
    c.join(1, "", "abacus");
    c.join(2);
    if (strict) {
      REQUIRE(c.run());
      CHECK(c.why.code() == fl::errc::config);
      CHECK(std::string(c.why.what()).find("reference on 'peer0', 'peer2'; abacus with 9 beads on 'peer1'") != std::string::npos);
      CHECK(std::string(c.why.what()).find("strict_bits") != std::string::npos);
      CHECK(c.warnings.empty());
    } else {
      CHECK(finish(c) == whole_run(small_run(3, 4)));
      REQUIRE(c.warnings.size() == 1);
      CHECK(c.warnings[0].find("abacus with 9 beads on 'peer1'") != std::string::npos);
    }
  }
  auto s = small_run(3, 4);  // a spare does not matter
  s.strict_bits = true;
  s.given_plan = chain_plan(fl::graph_of<case_gpt>().size(), {{2}, {0}});
  virtual_cluster c(s);
  c.join(0);
  c.join(1, "", "abacus");
  c.join(2);
  finish(c);
  CHECK(c.warnings.empty());
}
