// SPDX-License-Identifier: Apache-2.0
// A run's state on its way between broker and peers: three parts of each parameter (its weights, and two of the
// optimizer's), each one bulk frame with the parameter in `edge` and the part in `micro_batch`.
#pragma once

#include "../runtime/memory.hpp"
#include "../runtime/parameter_store.hpp"
#include "links.hpp"

namespace fusionllm::inline v0 {

inline constexpr u32 state_parts = 3;

inline outgoing state_message(int parameter, u32 part) {
  outgoing m;
  m.header.kind = frame_kind::bulk;
  m.header.edge = u32(parameter);
  m.header.micro_batch = part;
  m.level = priority::bulk;
  return m;
}
inline std::byte* part_of(const local_parameter& x, u32 part) { return part == 0 ? x.weight : part == 1 ? x.m : x.v; }

/// What a peer is the primary owner of, to the broker. It must rest until the last has left.
inline void send_own_state(connection& broker, const graph_view& g, const parameter_store& store, dtype real, u64 step, u32 rank) {
  for (const auto& x : store.parameters()) {
    if (!x.primary) continue;
    for (u32 part = 0; part < state_parts; ++part) {
      outgoing m = state_message(x.parameter, part);
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
  return {part_of(*x, h.micro_batch), std::size_t(bytes)};
}

}  // namespace fusionllm::inline v0
