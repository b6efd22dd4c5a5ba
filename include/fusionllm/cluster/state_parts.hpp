// SPDX-License-Identifier: Apache-2.0
// A run's state on its way between broker and peers: three parts of each parameter (its weights, and two of the
// optimizer's), each one bulk frame with the parameter in `edge` and the part in `micro_batch`.
#pragma once

#include "../runtime/parameter_store.hpp"
#include "links.hpp"

namespace fusionllm::inline v0 {

inline constexpr u32 state_parts = 3;

struct state_part {
  int parameter = -1;  ///< -1: none
  u32 part = 0;        ///< 0: weights
  explicit operator bool() const { return parameter >= 0; }
};

inline outgoing state_message(const state_part& p) {
  outgoing m;
  m.header.kind = frame_kind::bulk;
  m.header.edge = u32(p.parameter);
  m.header.micro_batch = p.part;
  m.level = priority::bulk;
  return m;
}
inline std::byte* part_of(const local_parameter& x, u32 part) { return part == 0 ? x.host_weight : part == 1 ? x.host_m : x.host_v; }

/// What a broker has still to send to whom.
class parts_to_send {
 public:
  parts_to_send() = default;
  /// By rank, last first.
  explicit parts_to_send(std::vector<std::vector<state_part>> left) : left_(std::move(left)) {}
  /// When a run resumes each peer gets the weights that it holds, and all parts of what it is the primary owner of.
  parts_to_send(const std::vector<parameter_owners>& owners, u32 peers) : left_(peers) {
    for (int p = int(owners.size()); p-- > 0;)
      for (int holder : owners[std::size_t(p)].holders)
        for (u32 part = holder == owners[std::size_t(p)].primary ? state_parts : 1; part-- > 0;) left_[std::size_t(holder)].push_back({p, part});
  }
  /// None when the peer has all.
  state_part next(u64 rank) {
    auto& left = left_[std::size_t(rank)];
    if (left.empty()) return {};
    const state_part p = left.back();
    left.pop_back();
    return p;
  }

 private:
  std::vector<std::vector<state_part>> left_;
};

/// What a peer is the primary owner of, to the broker. It must rest until the last has left.
inline void send_own_state(connection& broker, const graph_view& g, parameter_store& store, dtype real, u64 step, u32 rank) {
  store.to_host();
  for (const auto& x : store.parameters()) {
    if (!x.primary) continue;
    for (u32 part = 0; part < state_parts; ++part) {
      outgoing m = state_message({x.parameter, part});
      m.header.step = step;
      m.header.source = rank;
      m.parts[0] = {part_of(x, part), std::size_t(g.params[std::size_t(x.parameter)].count() * size_of(real))};
      broker.send(std::move(m));
    }
  }
}

/// Where a peer wants a part that the broker sends; null for what it does not hold. The same for a message of the wrong
/// size. Errors: protocol.
inline byte_span own_state_memory(parameter_store* store, const graph_view& g, dtype real, const frame_header& h) {
  local_parameter* x = store && h.edge < g.params.size() ? store->find(int(h.edge)) : nullptr;
  const u64 bytes = x ? g.params[h.edge].count() * size_of(real) : 0;
  if (!x || h.micro_batch >= state_parts || h.total_length != bytes || (h.micro_batch && !x->primary))
    fail(errc::protocol, "the broker sends ", h.total_length, " bytes of part ", h.micro_batch, " of parameter ", h.edge,
         ", which this peer does not hold or does not expect now");
  store->host_writes();
  return {part_of(*x, h.micro_batch), std::size_t(bytes)};
}

}  // namespace fusionllm::inline v0
