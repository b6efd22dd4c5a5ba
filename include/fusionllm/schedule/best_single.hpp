// SPDX-License-Identifier: Apache-2.0
// The whole model on the one device that is fastest at it: what every plan over links has to beat.
#pragma once

#include <set>

#include "chain_plan.hpp"
#include "judge.hpp"
#include "scheduler.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// The fastest of all one-peer plans, into a judge. Peers that are alike are tried once.
inline void consider_singles(const step_profile& f, plan_judge& judge) {
  std::set<std::vector<i64>> alike;
  const cost_model& costs = *f.problem().costs;
  for (int peer = 0; peer < costs.peers(); ++peer) {
    i64 load = 0;
    for (int i : f.order()) load = plus(load, f.both(peer, i));
    const i64 memory = i64((std::min)(costs.machines().peers[std::size_t(peer)].memory_bytes, u64(never)));
    if (alike.insert({load, costs.update(peer, 1'000'000), memory}).second)
      judge.consider(chain_plan(f, {{peer}}, {0, int(f.order().size())}));
  }
}

}  // namespace detail

struct best_single {
  using seat = scheduler_seat;
  static constexpr std::string_view name = "best_single";

  /// Errors: errc::plan when no device has the memory.
  plan operator()(const planning_problem& problem) const {
    const step_profile f(problem);
    plan_judge judge(f);
    detail::consider_singles(f, judge);
    if (!judge.found()) fail(errc::plan, "no single device can train the model: ", judge.first_obstacle(), ": plan over several");
    plan r = judge.best();
    r.scheduler = name;
    return r;
  }
};

}  // namespace fusionllm::inline v0
