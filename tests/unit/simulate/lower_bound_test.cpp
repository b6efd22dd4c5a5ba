// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/simulate/lower_bound.hpp>

#include "../schedule/planning_models.hpp"
#include "catch.hpp"
#include "fusionllm/simulate/replay.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("the bounds of a plan by hand") {
  const fl::cost_model costs = flat_costs(2, 10, {100, 1'000'000'000});
  const auto problem = problem_of<linears<3>>(costs, 4);
  const fl::step_bound b = fl::lower_bound(problem, plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 4));
  CHECK(b.compute == 4 * 40 + 5);
  CHECK(b.link == 4 * 32 + 100);
  CHECK(b.way == 20 + 132 + 20 + 20 + 132 + 20);
  CHECK(b.step() == 344);
}

TEST_CASE("no replay is shorter than its bound, whatever plan, machines and schedule") {
  fl::u64 state = 3;
  const auto below = [&](int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return int((state >> 33) % fl::u64(n));
  };
  for (int n = 0; n < 150; ++n) {
    const int peers = 2 + below(5), micro_batches = 1 + below(8);
    fl::cost_model costs = flat_costs(peers, 10, {1, 1});
    for (int a = 0; a < peers; ++a) {
      set_speed(costs, a, 1 + below(1000));
      for (int b = 0; b < peers; ++b) costs.set_path(a, b, {below(2000), fl::u64(1'000'000) << below(14)});
    }
    const auto problem = problem_of<gpt<2, 16>>(costs, micro_batches, {2, 4});
    fl::plan p;
    p.micro_batches = micro_batches;
    p.schedule = below(2) ? fl::schedule_kind::gpipe : fl::schedule_kind::one_f_one_b;
    const int stages = 1 + below(peers);
    for (int i = 0; i < problem.graph.size(); ++i) p.stage_of.push_back(i < 2 + stages && i >= 2 ? i - 2 : below(stages));
    for (int s = 0; s < stages; ++s) p.peers.push_back({(s + n) % peers});
    for (int a = 0; a < peers; ++a)
      if (below(2)) p.codecs.push_back({a, (a + 1) % peers, "any", double(1 + below(20))});
    const fl::replay_result r = fl::replay(problem, p);
    const fl::step_bound b = fl::lower_bound(problem, p);
    CHECK(r.step >= b.compute);
    CHECK(r.step >= b.link);
    CHECK(r.step >= b.way);
  }
}
