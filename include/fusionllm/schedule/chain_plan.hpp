// SPDX-License-Identifier: Apache-2.0
// A plan from stages in a chain: consecutive operators to each, and what follows from it.
#pragma once

#include "profile.hpp"
#include "program.hpp"

namespace fusionllm::inline v0 {

/// The peers of one stage: one, or several of one site that are replicas.
using peer_team = std::vector<int>;

/// Gives model inputs the stage of their first consumer: that is where they are loaded.
inline void place_inputs(const graph_view& g, plan& p) {
  for (int i = g.size() - 1; i >= 0; --i)
    for (int in : g.nodes[std::size_t(i)].in)
      if (in >= 0 && g.nodes[std::size_t(in)].op->placeholder) p.stage_of[std::size_t(in)] = p.stage_of[std::size_t(i)];
  for (int& s : p.stage_of) s = s < 0 ? 0 : s;  // an input that nobody reads
}

/// Fills in what follows from stages and peers: how the problem cuts the batch, places of model inputs, and a
/// codec for every directed pair of peers that exchanges tensors.
inline void complete(const planning_problem& problem, plan& p) {
  const graph_view& g = problem.graph;
  place_inputs(g, p);
  p.micro_batches = problem.micro_batches;
  p.groups = problem.groups;
  p.schedule = problem.schedule;
  p.recompute = problem.recompute;
  p.codecs.clear();
  if (p.stages() == 1) return;
  for (const edge& e : compile(g, p).edges)
    for (int m = 0; m < p.micro_batches; ++m) {
      const int from = p.peer_of(e.from, m), to = p.peer_of(e.to, m);
      bool listed = false;
      for (const link_codec& c : p.codecs) listed = listed || (c.from == from && c.to == to);
      if (listed) continue;
      const link_codec c = problem.codec_between(from, to);
      if (!c.codec.empty() && c.codec != "none") p.codecs.push_back(c);
    }
}

/// Stage s has the operators at positions begin[s] to begin[s + 1] of the order; those from begin.back() on, if any,
/// go to stage 0.
inline plan chain_plan(const step_profile& f, std::vector<peer_team> teams, const std::vector<int>& begin) {
  plan p;
  p.stage_of.assign(f.graph().nodes.size(), -1);
  for (std::size_t s = 0; s < teams.size(); ++s)
    for (int k = begin[s]; k < begin[s + 1]; ++k) p.stage_of[std::size_t(f.order()[std::size_t(k)])] = int(s);
  for (std::size_t k = std::size_t(begin.back()); k < f.order().size(); ++k) p.stage_of[std::size_t(f.order()[k])] = 0;
  p.peers = std::move(teams);
  complete(f.problem(), p);
  return p;
}

}  // namespace fusionllm::inline v0
