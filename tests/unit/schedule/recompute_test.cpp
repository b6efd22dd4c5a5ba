// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/recompute.hpp>

#include <fusionllm/schedule/predict.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fl::recompute_policy;

namespace {

std::vector<std::string> names_of(const fl::graph_view& g, const fl::flags& which) {
  std::vector<std::string> r;
  for (int i = 0; i < g.size(); ++i)
    if (which[std::size_t(i)]) r.push_back(std::string(g.nodes[std::size_t(i)].op->name));
  return r;
}
int count_of(const std::vector<std::string>& names, const char* name) { return int(std::count(names.begin(), names.end(), name)); }

}  // namespace

TEST_CASE("a block is a scope up to its first number") {
  CHECK(fl::block_of("h.3.mlp.c_fc") == "h.3");
  CHECK(fl::block_of("layer1.0.conv1") == "layer1.0");
  CHECK(fl::block_of("transformer.h.11") == "transformer.h.11");
  CHECK(fl::block_of("0.attn") == "0");
  CHECK(fl::block_of("ln_f").empty());
  CHECK(fl::block_of("layer1.conv2d").empty());
  CHECK(fl::block_of("").empty());
}

TEST_CASE("blocks drop everything but what leaves them; cheap are norms and element-wise operators of kept values") {
  const fl::graph_view g = fl::graph_of<gpt<3, 64>>();
  CHECK(names_of(g, fl::dropped_nodes(g, recompute_policy::none)).empty());
  const fl::flags block = fl::dropped_nodes(g, recompute_policy::block);
  const auto in_blocks = names_of(g, block);
  CHECK(in_blocks.size() == 3 * 9);  // of 10: the last addition leaves
  for (int i = 0; i < g.size(); ++i) {
    const auto own = fl::block_of(g.nodes[std::size_t(i)].scope.view());
    bool leaves = own.empty();
    for (int j = i + 1; j < g.size(); ++j)
      for (int in : g.nodes[std::size_t(j)].in) leaves = leaves || (in == i && fl::block_of(g.nodes[std::size_t(j)].scope.view()) != own);
    CHECK(bool(block[std::size_t(i)]) != leaves);
  }
  const auto cheap = names_of(g, fl::dropped_nodes(g, recompute_policy::selective));
  CHECK(count_of(cheap, "layer_norm") == 7);
  CHECK(count_of(cheap, "gelu") == 3);
  CHECK(cheap.size() == 10);
}

TEST_CASE("a block runs again once, inputs first, before its last operator goes backward, where it ran") {
  const fl::graph_view g = fl::graph_of<gpt<3, 64>>();
  for (int stages : {1, 2, 3}) {
    fl::plan p;
    for (int i = 0; i < g.size(); ++i) p.stage_of.push_back(i * stages / g.size());
    for (int s = 0; s < stages; ++s) p.peers.push_back({s});
    p.recompute = recompute_policy::block;
    const fl::program prog = fl::compile(g, p);
    const fl::flags dropped = fl::dropped_nodes(g, p.recompute);
    std::vector<int> times(g.nodes.size(), 0);
    for (const auto& t : prog.tasks) {
      CHECK((t.backward || t.reruns.empty()));
      for (std::size_t k = 0; k < t.reruns.size(); ++k) {
        const auto& r = t.reruns[k];
        CHECK(p.stage_of[std::size_t(r.node)] == t.stage);
        CHECK(dropped[std::size_t(r.node)]);
        CHECK(t.nodes[std::size_t(r.before)] >= r.node);
        ++times[std::size_t(r.node)];
        for (int in : g.nodes[std::size_t(r.node)].in)
          if (in >= 0 && dropped[std::size_t(in)] && p.stage_of[std::size_t(in)] == t.stage) CHECK(times[std::size_t(in)] == 1);
      }
    }
    for (int n : times) CHECK(n <= 1);
  }
}

TEST_CASE("the planner knows: less is kept, backward takes longer by what runs again, and more plans fit") {
  const fl::cost_model costs = flat_costs(2, 1000, {1, 1'000'000'000});
  auto problem = problem_of<gpt<6, 64>>(costs, 8, {4, 64});
  problem.schedule = fl::schedule_kind::gpipe;
  fl::plan p;
  const int n = problem.graph.size();
  for (int i = 0; i < n; ++i) p.stage_of.push_back(i * 2 / n);
  p.peers = {{0}, {1}};
  p.micro_batches = 8;
  p.schedule = problem.schedule;
  fl::nanoseconds step[3];
  fl::u64 need[3];
  for (auto policy : {recompute_policy::none, recompute_policy::block, recompute_policy::selective}) {
    problem.recompute = p.recompute = policy;
    const fl::step_profile f(problem);
    const fl::program prog = fl::compile(problem.graph, p);
    step[int(policy)] = fl::predict_step(f, p);
    const auto m = fl::memory_of(f, p, prog)[0];
    need[int(policy)] = m.activations * fl::u64(m.slots) + m.passing;
    // Every operator takes 1000 ns forward: what backward takes more is what runs again.
    int again = 0;
    fl::nanoseconds extra = 0;
    for (const auto& t : prog.tasks) again += int(t.reruns.size());
    for (int i : f.order())
      if (f.wanted()[std::size_t(i)]) extra += f.time(0, i, fl::direction::backward) - 1000;
    CHECK(extra >= 1000 * again);
    CHECK(extra <= 1000 * (again + 2));  // a plan makes fewer again where a stage gets what it needs from another
  }
  CHECK(step[1] > step[2]);
  CHECK(step[2] > step[0]);
  CHECK(need[1] * 4 < need[0]);
  CHECK(need[2] * 4 < need[0] * 3);
  // Memory that is too little for one is enough for the other.
  const fl::u64 fixed = fl::memory_of(fl::step_profile(problem), p, fl::compile(problem.graph, p))[0].parameters;
  const fl::cost_model small = flat_costs(2, 1000, {1, 1'000'000'000}, fixed + need[0] / 2);
  problem.costs = &small;
  problem.recompute = p.recompute = recompute_policy::none;
  CHECK(!fl::obstacle(fl::step_profile(problem), p, fl::compile(problem.graph, p)).empty());
  problem.recompute = p.recompute = recompute_policy::block;
  CHECK(fl::obstacle(fl::step_profile(problem), p, fl::compile(problem.graph, p)).empty());
}
