// SPDX-License-Identifier: Apache-2.0
// A broker's part in answering questions: which weights go to which peer, and then who is asked what.
#pragma once

#include "../runtime/forward_asker.hpp"
#include "question_plan.hpp"
#include "state_parts.hpp"

namespace fusionllm::inline v0 {

class broker_questions {
 public:
  /// Errors: model.
  broker_questions(const graph_view& g, const plan& p, const std::vector<forward_output>& outputs, dtype real)
      : graph_(g), plan_(p), outputs_(with_windows(outputs, p)), asker_(g, p, outputs_, real) {}

  std::vector<output_message> outputs_for(const planning_problem& problem, int peer, bool emulate) const {
    std::vector<output_message> r;
    for (const forward_output& o : outputs_) r.push_back(to_message(o, problem, plan_, peer, emulate));
    return r;
  }
  /// To each peer those that its stage reads.
  parts_to_send weights_to_send(u32 peers) const {
    std::vector<std::vector<state_part>> all(peers);
    for (u32 rank = 0; rank < peers; ++rank) {
      const int stage = plan_.stage_of_peer(int(rank));
      if (stage < 0) continue;
      const flags nodes = forward_nodes(graph_, plan_, outputs_, stage);
      flags read(graph_.params.size(), u8(0));
      for (std::size_t i = 0; i < nodes.size(); ++i)
        for (int p : graph_.nodes[i].params)
          if (nodes[i] && p >= 0) read[std::size_t(p)] = 1;
      for (int p = int(read.size()); p-- > 0;)
        if (read[std::size_t(p)]) all[rank].push_back({p, 0});
    }
    return parts_to_send(std::move(all));
  }
  forward_asker& asker() { return asker_; }
  const forward_asker& asker() const { return asker_; }
  bool idle() const {
    for (int o = 0; o < int(outputs_.size()); ++o)
      if (asker_.under_way(o) > 0) return false;
    return true;
  }

 private:
  graph_view graph_;
  plan plan_;
  std::vector<forward_output> outputs_;
  forward_asker asker_;
};

}  // namespace fusionllm::inline v0
