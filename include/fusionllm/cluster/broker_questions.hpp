// SPDX-License-Identifier: Apache-2.0
// A broker's part in answering questions: which weights go to which peer, one after the other, and then who is asked
// what.
#pragma once

#include "../runtime/forward_asker.hpp"
#include "question_plan.hpp"
#include "state_parts.hpp"

namespace fusionllm::inline v0 {

class broker_questions {
 public:
  /// Errors: model.
  broker_questions(const graph_view& g, const plan& p, const std::vector<forward_output>& outputs, dtype real, u32 peers)
      : plan_(p), outputs_(with_windows(outputs, p)), asker_(g, p, outputs_, real), weights_(peers) {
    for (u32 rank = 0; rank < peers; ++rank) {
      const int stage = p.stage_of_peer(int(rank));
      if (stage >= 0) weights_[rank] = read_by(g, forward_nodes(g, p, outputs_, stage));
    }
  }

  std::vector<output_message> outputs_for(const planning_problem& problem, int peer, bool emulate) const {
    std::vector<output_message> r;
    for (const forward_output& o : outputs_) r.push_back(to_message(o, problem, plan_, peer, emulate));
    return r;
  }
  /// The weights that a peer is to be sent next; none when it has all.
  state_part next_weight(u64 rank) {
    auto& left = weights_[std::size_t(rank)];
    if (left.empty()) return {};
    const int p = left.back();
    left.pop_back();
    return {p, 0};
  }
  forward_asker& asker() { return asker_; }
  const forward_asker& asker() const { return asker_; }
  bool idle() const {
    for (int o = 0; o < int(outputs_.size()); ++o)
      if (asker_.under_way(o) > 0) return false;
    return true;
  }

 private:
  /// Last first.
  static std::vector<int> read_by(const graph_view& g, const flags& nodes) {
    flags read(g.params.size(), u8(0));
    for (int i = 0; i < g.size(); ++i)
      for (int p : g.nodes[std::size_t(i)].params)
        if (nodes[std::size_t(i)] && p >= 0) read[std::size_t(p)] = 1;
    std::vector<int> r;
    for (int p = int(g.params.size()); p-- > 0;)
      if (read[std::size_t(p)]) r.push_back(p);
    return r;
  }

  plan plan_;
  std::vector<forward_output> outputs_;
  forward_asker asker_;
  std::vector<std::vector<int>> weights_;  ///< by rank: still to be sent
};

}  // namespace fusionllm::inline v0
