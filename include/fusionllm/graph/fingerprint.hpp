// SPDX-License-Identifier: Apache-2.0
// A 64-bit fingerprint of a graph, from names and numbers only: peers built by other compilers, at other optimization
// levels and for other devices have the same one. Run-time extents and initial values do not enter it.
#pragma once

#include "../core/fnv.hpp"
#include "node.hpp"

namespace fusionllm::inline v0 {

namespace detail {
constexpr void mix(fnv& h, const extents& e) {
  h.number(u64(e.rank));
  for (auto d : e.d) h.number(u64(d));
}
constexpr void mix(fnv& h, const attributes& a) {
  for (auto n : a.n) h.number(u64(n));
  h.number(u64(i64(a.x * 1e9)));
}
}  // namespace detail

constexpr u64 fingerprint(const graph_view& g) {
  fnv h;
  for (const auto& n : g.nodes) {
    h.text(n.op->name).number(u64(n.type));
    detail::mix(h, n.out);
    detail::mix(h, n.attr);
    for (auto i : n.in) h.number(u64(i));
    for (auto i : n.params) h.number(u64(i));
    for (int l = 0; l < n.links; ++l) {
      const chain_link& c = n.chain[std::size_t(l)];
      h.text(c.op->name).number(u64(c.traced_id)).number(u64(c.side));
      detail::mix(h, c.attr);
    }
    h.number(u64(n.traced_id));
  }
  for (const auto& p : g.params) {
    h.text(p.path.view()).byte(p.decays);
    detail::mix(h, p.dims);
  }
  for (const auto& o : g.outputs) h.text(o.path.view()).number(u64(o.node));
  return h.number(u64(g.loss)).value();
}

}  // namespace fusionllm::inline v0
