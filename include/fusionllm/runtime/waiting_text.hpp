// SPDX-License-Identifier: Apache-2.0
// Whom a peer waits for and what they owe it, in words, for errors.
#pragma once

#include "../schedule/dispatcher.hpp"
#include "gradient_sums.hpp"
#include "step_judge.hpp"

namespace fusionllm::inline v0 {

class waiting_text {
 public:
  explicit waiting_text(const peer_share& share) : share_(share) {}

  /// `blocked.task` is the edge of the message that is missing.
  std::string tensor(task_ref blocked) const {
    const edge& e = share_.prog.edges[std::size_t(blocked.task)];
    const node& o = share_.g.nodes[std::size_t(e.node)];
    std::ostringstream s;
    s << title(share_.p.peer_of(e.from, blocked.micro_batch)) << " for the " << (e.kind == edge_kind::activation ? "activation" : "cotangent")
      << " of node " << e.node << " (" << o.scope.view() << ' ' << o.op->name << "), micro-batch " << blocked.micro_batch;
    return std::move(s).str();
  }
  std::string chain() const { return title(share_.previous_replica()) + " for gradients of its replica"; }
  std::string total(const gradient_sums::owed& o) const { return title(o.by) + " for the gradient of " + name(o.parameter); }
  std::string verdict() const { return title(share_.leader) + ", the leader, for its verdict"; }
  std::string summaries(const step_judge& judge) const {
    std::string all;
    for (std::size_t i = 0; i < judge.members().size(); ++i)
      if (!judge.has_summary(i)) all += (all.empty() ? "" : ", ") + title(judge.members()[i]) + " for its summary";
    return all;
  }
  std::string values(int parameter) const { return title(share_.owners_at(parameter).primary) + " for new values of " + name(parameter); }

 private:
  std::string title(int peer) const { return share_.title(u64(peer)); }
  std::string name(int parameter) const { return std::string(share_.parameter(parameter).path.view()); }

  const peer_share& share_;
};

}  // namespace fusionllm::inline v0
