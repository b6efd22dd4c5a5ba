// SPDX-License-Identifier: Apache-2.0
// From machines to a run's plan: the scheduler's stages, then a ratio for each link that the plan uses (AdaTopK), then
// the predicted step and, in emulation, how long each task of each peer is held.
#pragma once

#include "../schedule/adaptive_codecs.hpp"
#include "control.hpp"
#include "settings.hpp"

namespace fusionllm::inline v0 {

inline planning_problem problem_of(const model_binding& model, const cluster_settings& s, const cost_model& costs) {
  planning_problem p;
  p.graph = model.graph;
  p.costs = &costs;
  p.micro_batch = s.micro_batch_bounds();
  p.micro_batches = s.micro_batches;
  p.groups = s.groups;
  p.schedule = s.schedule;
  p.recompute = s.given_plan ? s.given_plan->recompute : s.recompute;
  p.codec = s.codec.empty() ? std::string(model.default_compressor) : s.codec;
  if (p.codec == no_compression::label) p.codec = "none";
  p.ratio = p.codec == "none" ? 1 : s.codec_details.ratio;
  if (!s.outputs.empty()) p.least_peers = s.peers;  // who uses a model over peers wants each to hold a part
  return p;
}

/// Codecs of the links that carry edges of `p`: an adaptive compressor has on each link the ratio that it needs there
/// (AdaTopK), any other the user's ratio on all.
inline void choose_codecs(const model_binding& model, const planning_problem& problem, const codec_options& details, plan& p) {
  p.codecs.clear();
  if (problem.codec == "none") return;
  const step_profile profile(problem);
  if (model.make_codec(problem.codec, details)->adaptive()) {
    p.codecs = adaptive_codecs(profile, p, problem.codec, problem.ratio);
    return;
  }
  for (const auto& load : detail::directed_loads(profile, p)) p.codecs.push_back({load.from, load.to, problem.codec, problem.ratio});
}

/// Plans a run: the given plan, or the scheduler's; with codecs and the predicted step. Errors: plan, config.
inline plan plan_run(const model_binding& model, const cluster_settings& s, const cost_model& costs) {
  const planning_problem problem = problem_of(model, s, costs);
  plan p;
  if (s.given_plan) {
    p = *s.given_plan;
    check(p, model.graph, costs.peers());
  } else {
    p = model.make_plan(s.scheduler, problem);
    choose_codecs(model, problem, s.codec_details, p);
  }
  p.recompute = problem.recompute;
  p.predicted_step = predict_step(problem, p);
  return p;
}

/// How long each task of the program takes `peer`, in emulation.
inline std::vector<i64> holds_of(const planning_problem& problem, const plan& p, int peer) {
  const program prog = compile(problem.graph, p);
  const step_profile profile(problem);
  std::vector<i64> r(prog.tasks.size(), 0);
  for (std::size_t t = 0; t < prog.tasks.size(); ++t) {
    if (prog.tasks[t].stage != p.stage_of_peer(peer)) continue;
    for (int n : prog.tasks[t].nodes)
      r[t] += profile.time(peer, n, prog.tasks[t].backward ? direction::backward : direction::forward);
  }
  return r;
}
inline i64 update_hold_of(const planning_problem& problem, const plan& p, int peer) {
  u64 parameters = 0;
  const auto owners = owners_of(problem.graph, p);
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (owners[i].primary == peer) parameters += problem.graph.params[i].count();
  return problem.costs->update(peer, parameters);
}

inline assignment to_message(const plan& p) {
  assignment a;
  for (int s : p.stage_of) a.stage_of.push_back(u32(s));
  for (const auto& peers : p.peers) {
    a.stages.emplace_back();
    for (int x : peers) a.stages.back().peers.push_back(u32(x));
  }
  a.micro_batches = u32(p.micro_batches);
  a.groups = u32(p.groups);
  a.schedule = u32(p.schedule);
  a.recompute = u32(p.recompute);
  for (const auto& c : p.codecs) a.codecs.push_back({u32(c.from), u32(c.to), c.codec, c.ratio});
  return a;
}
/// Errors: plan, protocol.
inline plan from_message(const assignment& a, const graph_view& g, int peers) {
  plan p;
  if (a.schedule > 1) fail(errc::protocol, "the broker's plan has schedule ", a.schedule, ", expected 0 or 1");
  if (a.recompute > u32(recompute_policy::selective)) fail(errc::protocol, "the broker's plan has recompute ", a.recompute, ", expected 0 to 2");
  for (u32 s : a.stage_of) p.stage_of.push_back(int(s));
  for (const auto& s : a.stages) p.peers.emplace_back(s.peers.begin(), s.peers.end());
  if (a.micro_batches > (1u << 20)) fail(errc::protocol, "the broker's plan has ", a.micro_batches, " micro-batches");
  p.micro_batches = int(a.micro_batches);
  p.groups = int(a.groups);
  p.schedule = schedule_kind(a.schedule);
  p.recompute = recompute_policy(a.recompute);
  for (const auto& c : a.codecs) p.codecs.push_back({int(c.from), int(c.to), c.codec, c.ratio});
  check(p, g, peers);
  return p;
}

}  // namespace fusionllm::inline v0
