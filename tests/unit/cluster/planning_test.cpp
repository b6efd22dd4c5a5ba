// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cluster/planning.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;
using fl::nanoseconds;

namespace {

// Three peers; the way between 0 and 1 is fast, that between 1 and 2 slow.
fl::cluster_settings uneven(const char* codec) {
  auto s = small_run(3, 8);
  s.batch = 12;  // micro-batches of equal size, as predictions take them to be
  s.codec = codec;
  fl::machine m;
  m.flops_per_second = 200'000'000;
  m.memory_bytes = 1 << 30;
  s.machines = fl::uniform_cluster(3, m, fl::path{3 * fl::millisecond, 12'500'000});
  for (auto [a, b] : {std::pair(1, 2), std::pair(2, 1)}) s.machines->paths[std::size_t(a * 3 + b)] = {9 * fl::millisecond, 250'000};
  return s;
}

// The virtual network as the topology says, without jitter.
void follow_topology(virtual_cluster& c, const fl::cluster& m) {
  for (int a = 0; a < m.size(); ++a)
    for (int b = 0; b < m.size(); ++b)
      if (a != b)
        c.network().set_link("peer" + std::to_string(a), "peer" + std::to_string(b),
                             {.latency = m.between(a, b).latency, .bits_per_second = m.between(a, b).bytes_per_second * 8, .jitter = 0});
}

}  // namespace

TEST_CASE("a step takes what was predicted, whatever the plan, the links and the compressor") {
  const int n = fl::graph_of<case_gpt>().size();
  for (const char* codec : {"none", "uniform_top_k", "ada_top_k", "int8"})
    for (int k = 0; k < 5; ++k) {
      auto s = uneven(codec);
      if (k == 1) s.given_plan = chain_plan(n, {{2}, {1}, {0}});
      if (k == 2) s.given_plan = chain_plan(n, {{0, 1}, {2}});
      if (k == 3) s.given_plan = chain_plan(n, {{1}, {2, 0}});
      if (k == 4) {
        s.given_plan = chain_plan(n, {{0}, {1}});
        for (int i = 0; i < n; ++i) s.given_plan->stage_of[std::size_t(i)] = i > 4 && i < n - 3;
        s.schedule = s.given_plan->schedule = fl::schedule_kind::gpipe;
      }
      virtual_cluster c(s, 3);
      follow_topology(c, *s.machines);
      c.join_all();
      REQUIRE(c.run());
      REQUIRE(c.why.code() == fl::errc::ok);
      REQUIRE(c.steps.size() == 8);
      const double predicted = double(c.steps[5].predicted), measured = double(c.steps[5].elapsed);
      INFO(codec << ", plan " << k << ": predicted " << predicted / 1e6 << " ms, measured " << measured / 1e6);
      CHECK(measured > 0.97 * predicted);
      CHECK(measured < 1.03 * predicted);
    }
}

TEST_CASE("AdaTopK compresses the slow links only, and each direction as it needs") {
  const auto s = uneven("ada_top_k");
  const fl::cost_model costs(*s.machines, case_binding().encoded_bytes);
  const fl::plan p = fl::plan_run(case_binding(), s, costs);
  REQUIRE(!p.codecs.empty());
  for (const auto& c : p.codecs) {
    CHECK(c.from + c.to == 3);  // between 1 and 2
    CHECK(c.codec == "ada_top_k");
    CHECK(c.ratio > 1);
    CHECK(c.ratio <= s.codec_details.ratio);
  }
  const fl::plan all = fl::plan_run(case_binding(), uneven("uniform_top_k"), costs);
  CHECK(all.codecs.size() == 4);  // every link that carries tensors
  for (const auto& c : all.codecs) CHECK(c.ratio == s.codec_details.ratio);
  CHECK(fl::plan_run(case_binding(), uneven("none"), costs).codecs.empty());
  CHECK(p.predicted_step < fl::plan_run(case_binding(), uneven("none"), costs).predicted_step);
}

TEST_CASE("a given plan has its own policy of recomputation, a scheduler's that of the settings") {
  auto s = uneven("none");
  s.recompute = fl::recompute_policy::selective;
  const fl::cost_model costs(*s.machines, case_binding().encoded_bytes);
  CHECK(fl::plan_run(case_binding(), s, costs).recompute == fl::recompute_policy::selective);
  s.given_plan = chain_plan(fl::graph_of<case_gpt>().size(), {{0}});
  const fl::plan kept = fl::plan_run(case_binding(), s, costs);
  CHECK(kept.recompute == fl::recompute_policy::none);
  s.given_plan->recompute = fl::recompute_policy::block;
  const fl::plan again = fl::plan_run(case_binding(), s, costs);
  CHECK(again.recompute == fl::recompute_policy::block);
  CHECK(fl::problem_of(case_binding(), s, costs).recompute == fl::recompute_policy::block);
  CHECK(again.predicted_step > kept.predicted_step);
}

TEST_CASE("a plan comes back from a message as it was; one that does not fit is refused") {
  const auto g = fl::graph_of<case_gpt>();
  fl::plan p = chain_plan(g.size(), {{2, 1}, {0}}, 6, 2);
  p.schedule = fl::schedule_kind::gpipe;
  p.codecs = {{2, 0, "int8", 1}, {0, 2, "ada_top_k", 7.25}};
  const fl::plan q = fl::from_message(fl::to_message(p), g, 3);
  CHECK(q.stage_of == p.stage_of);
  CHECK(q.peers == p.peers);
  CHECK(q.micro_batches == 6);
  CHECK(q.groups == 2);
  CHECK(q.schedule == p.schedule);
  REQUIRE(q.codecs.size() == 2);
  CHECK(q.codecs[1].ratio == 7.25);
  CHECK(q.codecs[1].codec == "ada_top_k");
  const auto refused = [&](auto change) {
    fl::assignment a = fl::to_message(p);
    change(a);
    const auto e = error_of([&] { fl::from_message(a, g, 3); });
    INFO(e.text);
    const bool known = e.code == fl::errc::plan || e.code == fl::errc::protocol;
    CHECK(known);
  };
  refused([](fl::assignment& a) { a.stage_of.pop_back(); });
  refused([](fl::assignment& a) { a.stage_of[3] = 0xFFFFFFFF; });
  refused([](fl::assignment& a) { a.stage_of[3] = 2; });
  refused([](fl::assignment& a) { a.stages.clear(); });
  refused([](fl::assignment& a) { a.stages[1].peers = {9}; });
  refused([](fl::assignment& a) { a.stages[1].peers = {0xFFFFFFFF}; });
  refused([](fl::assignment& a) { a.micro_batches = 0; });
  refused([](fl::assignment& a) { a.micro_batches = 0xFFFFFFFF; });
  refused([](fl::assignment& a) { a.groups = 7; });
  refused([](fl::assignment& a) { a.groups = 0xFFFFFFFF; });
  refused([](fl::assignment& a) { a.schedule = 2; });
}

TEST_CASE("an emulated peer holds the tasks of its stage for their modelled time") {
  const auto s = uneven("none");
  const fl::cost_model costs(*s.machines, case_binding().encoded_bytes);
  const auto problem = fl::problem_of(case_binding(), s, costs);
  const fl::plan p = chain_plan(problem.graph.size(), {{0}, {1}});
  const fl::program prog = fl::compile(problem.graph, p);
  nanoseconds all = 0, expected = 0;
  for (int peer = 0; peer < 3; ++peer) {
    const auto h = fl::holds_of(problem, p, peer);
    REQUIRE(h.size() == prog.tasks.size());
    for (std::size_t t = 0; t < h.size(); ++t) {
      CHECK((h[t] > 0) == (prog.tasks[t].stage == p.stage_of_peer(peer)));
      all += h[t];
    }
  }
  const fl::step_profile f(problem);
  for (int i : f.order()) expected += f.both(0, i);
  CHECK(all == expected);
  CHECK(fl::update_hold_of(problem, p, 0) > 0);
  CHECK(fl::update_hold_of(problem, p, 2) <= fl::update_hold_of(problem, p, 1));
}
