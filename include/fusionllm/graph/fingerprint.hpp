// SPDX-License-Identifier: Apache-2.0
// A 64-bit fingerprint of a graph, from names and numbers only: peers built by other compilers, at other optimization
// levels and for other devices have the same one. Run-time extents and initial values do not enter it.
#pragma once

#include <bit>

#include "node.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Like FNV-1a, but takes a number in one step (and mixes its high bits down), so that a graph of a thousand nodes is
/// hashed within a compiler's default limits.
class graph_hash {
 public:
  constexpr graph_hash& number(u64 v) {
    hash_ = (hash_ ^ v) * 1099511628211ull;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  constexpr graph_hash& text(std::string_view s) {
    for (char c : s) hash_ = (hash_ ^ u8(c)) * 1099511628211ull;
    return number(s.size());
  }
  constexpr graph_hash& shape(const extents& e) {
    number(u64(e.rank));
    for (int i = 0; i < e.rank; ++i) number(u64(e.d[std::size_t(i)]));
    return *this;
  }
  constexpr graph_hash& attribute(const attributes& a) {
    for (auto n : a.n) number(u64(n));
    return number(std::bit_cast<u64>(a.x));
  }
  constexpr u64 value() const { return hash_; }

 private:
  u64 hash_ = 14695981039346656037ull;
};

}  // namespace detail

constexpr u64 fingerprint(const graph_view& g) {
  detail::graph_hash h;
  for (const auto& n : g.nodes) {
    h.text(n.op->name).number(u64(n.type)).number(u64(n.traced_id)).shape(n.out).attribute(n.attr);
    if (n.op->placeholder) h.text(n.scope.view());
    for (auto i : n.in) h.number(u64(i));
    for (int k = 0; k < n.param_count(); ++k) h.number(u64(n.params[std::size_t(k)]));
    h.number(u64(n.param_count()));
    for (int l = 0; l < n.links; ++l) {
      const chain_link& c = n.chain[std::size_t(l)];
      h.text(c.op->name).number(u64(c.traced_id)).number(u64(c.side)).attribute(c.attr);
    }
  }
  for (const auto& p : g.params) {
    h.text(p.path.view()).number(p.decays).shape(p.dims);
    if (!p.trained()) h.number(std::bit_cast<u64>(p.momentum));
  }
  for (const auto& o : g.outputs) h.text(o.path.view()).number(u64(o.node));
  return h.number(u64(g.loss)).value();
}

}  // namespace fusionllm::inline v0
