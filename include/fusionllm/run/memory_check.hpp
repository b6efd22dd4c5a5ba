// SPDX-License-Identifier: Apache-2.0
// Whether a run in this process keeps to `memory_mib`: the planner's estimate of a plan of one stage on one machine.
#pragma once

#include "../cluster/planning.hpp"
#include "settings.hpp"

namespace fusionllm::inline v0 {

/// Errors: errc::plan with what the run would need, when that is more than the configuration allows. 0 allows all.
inline void check_memory(const model_binding& model, const run_config& c) {
  if (c.memory_mib == 0) return;
  cluster_settings s = cluster_settings_of(c);
  s.peers = 1;
  s.codec = "none";
  machine here;
  here.flops_per_second = 1'000'000'000;
  here.memory_bytes = u64(c.memory_mib) << 20;
  plan p;
  p.stage_of.assign(model.graph.nodes.size(), 0);
  p.peers = {{0}};
  p.micro_batches = s.micro_batches;
  p.groups = s.groups;
  p.schedule = s.schedule;
  p.recompute = s.recompute;
  cluster alone = uniform_cluster(1, here, path{});
  alone.peers[0].name = "this process";
  const cost_model costs(std::move(alone), model.encoded_bytes);
  const planning_problem problem = problem_of(model, s, costs);
  const std::string why = obstacle(step_profile(problem), p, compile(model.graph, p));
  if (!why.empty()) fail(errc::plan, why, ": use more micro_batches, recompute, more peers, or a larger memory_mib");
}

}  // namespace fusionllm::inline v0
