// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/simulate/replay.hpp>

#include "../schedule/planning_models.hpp"
#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("a replay adds up what peers and links do") {
  const fl::cost_model costs = flat_costs(4, 10, {100, 1'000'000'000});
  const auto problem = problem_of<linears<3>>(costs, 2);
  fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{1}, {3}}, 2);
  p.codecs = {{1, 3, "any", 4}};
  const fl::replay_result r = fl::replay(problem, p);
  CHECK(r.step == fl::predict_step(problem, p));
  REQUIRE(r.peers.size() == 2);
  CHECK(r.peers[0].peer == 1);
  CHECK(r.peers[0].busy == 2 * 2 * 20 + 5);
  CHECK(r.peers[1].peer == 3);
  CHECK(r.peers[1].stage == 1);
  CHECK(r.peers[1].memory.total() > 0);
  REQUIRE(r.links.size() == 2);
  CHECK((r.links[0].from == 1 && r.links[0].to == 3));
  CHECK(r.links[0].messages == 3);  // two activations, a summary
  CHECK(r.links[0].tensor_bytes == 2 * 8);
  CHECK(r.links[0].bytes == 2 * 8 + 56);
  CHECK(r.links[0].raw_bytes == 2 * 32 + 56);
  CHECK(r.links[0].busy == 2 * 8 + 56);
  CHECK(r.links[1].tensor_bytes == 2 * 32);
  CHECK(r.messages.size() == 6);
  CHECK(r.computes.size() == 8 + 2);
}

TEST_CASE("peers never compute two tasks at once, links never carry two messages at once, nothing is early") {
  const fl::cost_model costs = flat_costs(3, 7, {50, 300'000'000});
  const auto problem = problem_of<gpt<2, 16>>(costs, 5, {2, 4});
  fl::plan p;
  for (int i = 0; i < problem.graph.size(); ++i) p.stage_of.push_back(i < 8 || i > 20 ? 0 : i < 13 ? 1 : 2);
  p.peers = {{2}, {0}, {1}};
  p.micro_batches = 5;
  const fl::replay_result r = fl::replay(problem, p);
  std::vector<fl::nanoseconds> free(3);
  for (const auto& c : r.computes) {
    CHECK(c.start >= free[std::size_t(c.peer)]);
    free[std::size_t(c.peer)] = c.end;
  }
  std::vector<fl::nanoseconds> sent(9);
  for (const auto& m : r.messages) {
    CHECK(m.sent >= sent[std::size_t(m.from * 3 + m.to)] + (std::min)(m.busy, fl::nanoseconds(1)));
    sent[std::size_t(m.from * 3 + m.to)] = m.sent;
    CHECK(m.sent - m.start >= m.busy);
    CHECK(m.arrived == m.sent + 50);
    CHECK(m.arrived <= r.step);
  }
  for (const auto& l : r.links) CHECK(l.busy <= sent[std::size_t(l.from * 3 + l.to)]);
  // Every task of every micro-batch once, none before what it receives.
  CHECK(r.computes.size() == r.prog.tasks.size() * 5 + 3);
  for (const auto& c : r.computes)
    if (c.task >= 0)
      for (int e : r.prog.tasks[std::size_t(c.task)].receives)
        for (const auto& m : r.messages)
          if ((m.kind == fl::message_kind::activation || m.kind == fl::message_kind::cotangent) && m.subject == e && m.micro_batch == c.micro_batch)
            CHECK(m.arrived <= c.start);
}

TEST_CASE("a replay is the same every time, and refuses what cannot run") {
  fl::cost_model costs = flat_costs(2, 10, {100, 1'000'000});
  const auto problem = problem_of<linears<3>>(costs, 3);
  const fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 3);
  const auto a = fl::replay(problem, p), b = fl::replay(problem, p);
  CHECK(a.step == b.step);
  CHECK(a.messages.size() == b.messages.size());
  costs.set_path(1, 0, {});
  CHECK(fusionllm_test::error_of([&] { fl::replay(problem, p); }).says(fl::errc::plan, "cannot reach"));
  CHECK(fusionllm_test::error_of([&] { fl::replay(problem, plan_of({0}, {{0}})); }).says(fl::errc::plan, "1 nodes"));
}
