// SPDX-License-Identifier: Apache-2.0
// Who holds which parameter. Every peer whose stage uses it has a copy; the primary owner, the first replica of the
// stage of its first use, has the optimizer's state, sums the gradients of all uses in graph order, updates, and sends
// the new values to the others. So a shared parameter has one optimizer state and equal copies.
#pragma once

#include "plan.hpp"

namespace fusionllm::inline v0 {

struct parameter_owners {
  int primary = -1;                ///< peer
  std::vector<int> holders;        ///< peers with a copy, primary first
  std::vector<use> uses;           ///< ascending
  std::vector<int> stages;         ///< of each use
};

/// One entry a parameter.
inline std::vector<parameter_owners> owners_of(const graph_view& g, const plan& p) {
  const auto uses = parameter_uses(g);
  std::vector<parameter_owners> r(g.params.size());
  for (std::size_t i = 0; i < r.size(); ++i) {
    r[i].uses = uses[i];
    for (const use& u : uses[i]) {
      const int s = p.stage_of[std::size_t(u.node)];
      r[i].stages.push_back(s);
      for (int peer : p.peers[std::size_t(s)])
        if (std::find(r[i].holders.begin(), r[i].holders.end(), peer) == r[i].holders.end()) r[i].holders.push_back(peer);
    }
    if (!r[i].holders.empty()) r[i].primary = r[i].holders.front();
  }
  return r;
}

/// The first replica of the loss's stage: it adds up losses and gradient norms, and says how every peer updates.
inline int leader_of(const graph_view& g, const plan& p) {
  return p.peers[std::size_t(p.stage_of[std::size_t(g.loss)])].front();
}

}  // namespace fusionllm::inline v0
