// SPDX-License-Identifier: Apache-2.0
// What a scheduler is asked: this graph, cut into these micro-batches, on these machines, at these costs.
#pragma once

#include "../estimate/cost_model.hpp"
#include "plan.hpp"

namespace fusionllm::inline v0 {

/// Bytes that one parameter takes on a peer.
struct parameter_memory {
  u64 copy = 8;     ///< on every holder: value and gradient
  u64 primary = 8;  ///< more on the primary owner: the optimizer's state
};

struct planning_problem {
  graph_view graph;
  const cost_model* costs = nullptr;  ///< must outlive the problem
  sizes micro_batch;                  ///< extents of the largest
  int micro_batches = 1;              ///< in a step
  int groups = 1;                     ///< replicas of a stage take whole groups
  schedule_kind schedule = schedule_kind::one_f_one_b;
  recompute_policy recompute = recompute_policy::none;
  std::string codec = "none";         ///< of every link that is not listed in `codecs`
  double ratio = 1;
  std::vector<link_codec> codecs;
  bool replicas = false;              ///< stages may have several peers
  int least_peers = 1;                ///< plans over fewer peers are not asked for, however fast
  parameter_memory memory;

  int peers() const { return costs->peers(); }
  /// How tensors travel from peer to peer; valid while the problem is.
  link_codec codec_between(int from, int to) const {
    for (const link_codec& c : codecs)
      if (c.from == from && c.to == to) return c;
    return {from, to, codec, ratio};
  }
};

/// Throws errc::plan unless the problem is one.
inline void check(const planning_problem& p) {
  if (!p.costs) fail(errc::plan, "the planning problem has no cost model");
  bool any = false;
  for (const node& n : p.graph.nodes) any = any || !n.op->placeholder;
  if (!any) fail(errc::plan, "the model has no operator: there is nothing to place");
  if (p.micro_batch.batch < 1 || p.micro_batch.time < 1)
    fail(errc::plan, "a micro-batch of ", p.micro_batch.batch, " x ", p.micro_batch.time, ", expected 1 x 1 or more");
  if (p.micro_batches < 1) fail(errc::plan, "micro_batches is ", p.micro_batches, ", expected 1 or more");
  if (p.groups < 1 || p.groups > p.micro_batches)
    fail(errc::plan, "groups is ", p.groups, ", expected 1 to micro_batches = ", p.micro_batches);
  if (p.least_peers < 1 || p.least_peers > p.peers())
    fail(errc::plan, "at least ", p.least_peers, " peers are asked for, the cluster has ", p.peers());
  if (!(p.ratio >= 0 && p.ratio < 1e9)) fail(errc::plan, "the compression ratio is ", p.ratio, ", expected 0 or more");
}

}  // namespace fusionllm::inline v0
