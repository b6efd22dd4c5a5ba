// SPDX-License-Identifier: Apache-2.0
// A plan: which stage runs each node, which peers run each stage, and how a batch is cut. A stage's nodes need not be
// contiguous; a peer runs at most one stage. Everything else (messages, tasks, owners of parameters) follows from it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../graph/autodiff.hpp"

namespace fusionllm::inline v0 {

/// In which order a peer takes ready tasks. It changes time and memory, never results.
enum class schedule_kind : u8 { gpipe, one_f_one_b };

constexpr const char* name_of(schedule_kind k) { return k == schedule_kind::gpipe ? "gpipe" : "1f1b"; }

/// What is computed again in backward instead of kept (schedule/recompute.hpp). It changes time and memory, never results.
enum class recompute_policy : u8 {
  none,
  block,     ///< everything inside a block but what leaves it
  selective  ///< what costs little for the memory that it takes
};
constexpr const char* name_of(recompute_policy p) {
  return p == recompute_policy::block ? "block" : p == recompute_policy::selective ? "selective" : "none";
}

/// More cost a planner more time than they could save a run.
inline constexpr int most_micro_batches = 4096;

/// How tensors travel over one directed link: a compressor's name and its ratio.
struct link_codec {
  int from = -1;
  int to = -1;
  std::string codec = "none";
  double ratio = 1;
};

struct plan {
  std::string scheduler;                 ///< who made it
  std::vector<int> stage_of;             ///< node -> stage; of a model input: any, it is loaded where it is used
  std::vector<std::vector<int>> peers;   ///< stage -> peers; several are replicas
  int micro_batches = 1;                 ///< in one step
  int groups = 1;                        ///< of consecutive micro-batches; gradients are summed within, then across
  schedule_kind schedule = schedule_kind::one_f_one_b;
  recompute_policy recompute = recompute_policy::none;
  std::vector<link_codec> codecs;        ///< links that are not listed carry raw tensors
  nanoseconds predicted_step = 0;        ///< by the simulator; 0: not simulated
  std::vector<std::string> notes;        ///< what the scheduler has to say, e.g. that one device would be faster

  int stages() const { return int(peers.size()); }
  int group_of(int micro_batch) const { return int(i64(micro_batch) * groups / micro_batches); }
  /// The replica of a stage that runs a micro-batch: replicas take whole groups, in order.
  int replica_of(int stage, int micro_batch) const {
    return int(i64(group_of(micro_batch)) * i64(peers[std::size_t(stage)].size()) / groups);
  }
  int peer_of(int stage, int micro_batch) const {
    return peers[std::size_t(stage)][std::size_t(replica_of(stage, micro_batch))];
  }
  /// The stage that a peer runs, -1 if none.
  int stage_of_peer(int peer) const {
    for (int s = 0; s < stages(); ++s)
      for (int p : peers[std::size_t(s)])
        if (p == peer) return s;
    return -1;
  }
};

/// Throws errc::plan unless every node has a stage, every stage a peer, no peer two stages, and replicas divide groups.
inline void check(const plan& p, const graph_view& g, int peer_count) {
  if (p.stage_of.size() != g.nodes.size())
    fail(errc::plan, "the plan places ", p.stage_of.size(), " nodes, the model has ", g.nodes.size(),
         ": make the plan for this model");
  if (p.peers.empty()) fail(errc::plan, "the plan has no stage");
  for (std::size_t i = 0; i < p.stage_of.size(); ++i)
    if (p.stage_of[i] < 0 || p.stage_of[i] >= p.stages())
      fail(errc::plan, "node ", i, " is on stage ", p.stage_of[i], ", expected 0 to ", p.stages() - 1);
  if (p.micro_batches < 1 || p.micro_batches > most_micro_batches)
    fail(errc::plan, "micro_batches is ", p.micro_batches, ", expected 1 to ", most_micro_batches);
  if (p.groups < 1 || p.groups > p.micro_batches)
    fail(errc::plan, "groups is ", p.groups, ", expected 1 to micro_batches = ", p.micro_batches);
  std::vector<int> seen(std::size_t((std::max)(peer_count, 0)), -1);
  for (int s = 0; s < p.stages(); ++s) {
    const auto& replicas = p.peers[std::size_t(s)];
    if (replicas.empty()) fail(errc::plan, "stage ", s, " has no peer");
    if (p.groups % int(replicas.size()) != 0)
      fail(errc::plan, "stage ", s, " has ", replicas.size(), " replicas, which do not divide groups = ", p.groups);
    for (int peer : replicas) {
      if (peer < 0 || peer >= peer_count)
        fail(errc::plan, "stage ", s, " is on peer ", peer, ", expected 0 to ", peer_count - 1);
      if (seen[std::size_t(peer)] >= 0)
        fail(errc::plan, "peer ", peer, " runs stages ", seen[std::size_t(peer)], " and ", s, ", expected one stage a peer");
      seen[std::size_t(peer)] = s;
    }
    bool used = false;
    for (std::size_t i = 0; i < p.stage_of.size(); ++i) used = used || (p.stage_of[i] == s && !g.nodes[i].op->placeholder);
    if (!used) fail(errc::plan, "stage ", s, " has no node: remove it");
  }
}

}  // namespace fusionllm::inline v0
