// SPDX-License-Identifier: Apache-2.0
// What a plan needs of each peer's memory: parameters, optimizer state, and activations for every micro-batch that its
// schedule holds in flight. An estimate from above: a run plans its arenas by live ranges.
#pragma once

#include "dispatcher.hpp"
#include "owners.hpp"
#include "profile.hpp"

namespace fusionllm::inline v0 {

struct memory_need {
  u64 parameters = 0;   ///< values, gradients, optimizer state
  u64 activations = 0;  ///< of one micro-batch in flight
  int slots = 0;        ///< micro-batches in flight
  u64 passing = 0;      ///< workspace, values that nobody keeps, of the operator that needs most; what is computed again
  u64 total() const { return parameters + activations * u64(slots) + passing; }
};

namespace detail {

// By stage: what is there again at one time. A block's values all are; of cheap ones, those of one operator and its input.
inline std::vector<u64> rerun_bytes(const step_profile& f, const plan& p) {
  std::vector<u64> most(p.peers.size(), 0), sum(p.peers.size(), 0);
  std::string_view block;
  for (int i : f.order()) {
    const std::size_t s = std::size_t(p.stage_of[std::size_t(i)]);
    const std::string_view own = block_of(f.graph().nodes[std::size_t(i)].scope.view());
    if (own != block) sum.assign(sum.size(), 0);
    block = own;
    if (f.problem().recompute == recompute_policy::block) sum[s] += f.rerun_bytes(i);
    else sum[s] = 2 * f.rerun_bytes(i);
    most[s] = (std::max)(most[s], sum[s]);
  }
  return most;
}

}  // namespace detail

/// One entry a peer of the cluster; peers without a stage need nothing.
inline std::vector<memory_need> memory_of(const step_profile& f, const plan& p, const program& prog) {
  const graph_view& g = f.graph();
  const parameter_memory& bytes = f.problem().memory;
  std::vector<memory_need> r(std::size_t(f.problem().peers()));
  const auto owners = owners_of(g, p);
  for (std::size_t i = 0; i < owners.size(); ++i)
    for (int peer : owners[i].holders)
      r[std::size_t(peer)].parameters += g.params[i].count() * (bytes.copy + (peer == owners[i].primary ? bytes.primary : 0));
  std::vector<u64> kept(p.peers.size()), passing(p.peers.size());
  for (int i : f.order()) {
    const std::size_t s = std::size_t(p.stage_of[std::size_t(i)]);
    kept[s] += f.kept_bytes(i);
    // Output and cotangents of an operator at work, beside what is kept.
    passing[s] = (std::max)(passing[s], f.cost(i).workspace_bytes + 2 * f.cost(i).output_bytes);
  }
  const auto again = detail::rerun_bytes(f, p);
  for (std::size_t s = 0; s < again.size(); ++s) passing[s] += again[s];
  for (const edge& e : prog.edges)
    if (e.kind == edge_kind::activation && f.kept(e.node)) kept[std::size_t(e.to)] += f.cost(e.node).output_bytes;
  for (int s = 0; s < p.stages(); ++s)
    for (std::size_t k = 0; k < p.peers[std::size_t(s)].size(); ++k) {
      memory_need& m = r[std::size_t(p.peers[std::size_t(s)][k])];
      m.activations = kept[std::size_t(s)];
      m.passing = passing[std::size_t(s)];
      m.slots = dispatcher(prog, p, s, int(k)).slots();
    }
  return r;
}

}  // namespace fusionllm::inline v0
