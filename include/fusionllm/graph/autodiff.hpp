// SPDX-License-Identifier: Apache-2.0
// Reverse-mode order. The cotangent of a value with consumers c1 < c2 < ... < cn is summed last consumer first,
// ((dn + dn-1) + ...) + d1: each partial sum is formed where the earlier consumer runs, so that the bits do not depend
// on which peers hold which consumers. Operators go backward in descending order of their numbers.
#pragma once

#include <vector>

#include "node.hpp"

namespace fusionllm::inline v0 {

/// Consumer `node` reads a value as its input `slot`.
struct use {
  int node = -1;
  int slot = -1;
  constexpr bool operator==(const use&) const = default;
};

/// Which nodes' values influence the loss through real numbers and depend on a parameter: those that get a cotangent.
constexpr flags nodes_with_cotangent(const graph_view& g) {
  const std::size_t n = g.nodes.size();
  flags depends(n, u8(0)), reaches(n, u8(0));
  for (std::size_t i = 0; i < n; ++i) {
    const node& o = g.nodes[i];
    depends[i] = o.param_count() > 0;
    for (std::size_t k = 0; k < max_inputs; ++k)
      if (o.in[k] >= 0 && (o.op->differentiable >> k & 1)) depends[i] = depends[i] || depends[std::size_t(o.in[k])];
  }
  if (g.loss < 0 || !g.nodes[std::size_t(g.loss)].op->loss) return flags(n, u8(0));
  reaches[std::size_t(g.loss)] = true;
  for (std::size_t i = n; i-- > 0;)
    if (reaches[i])
      for (std::size_t k = 0; k < max_inputs; ++k)
        if (g.nodes[i].in[k] >= 0 && (g.nodes[i].op->differentiable >> k & 1))
          reaches[std::size_t(g.nodes[i].in[k])] = true;
  for (std::size_t i = 0; i < n; ++i) depends[i] = depends[i] && reaches[i];
  return depends;
}

/// For every node, the uses that send it a cotangent, in ascending order; empty where none is needed.
constexpr std::vector<std::vector<use>> cotangent_uses(const graph_view& g) {
  const auto wanted = nodes_with_cotangent(g);
  std::vector<std::vector<use>> r(g.nodes.size(), std::vector<use>{});
  for (int i = 0; i < g.size(); ++i) {
    if (!wanted[std::size_t(i)]) continue;
    const node& o = g.nodes[std::size_t(i)];
    for (int k = 0; k < max_inputs; ++k) {
      const int in = o.in[std::size_t(k)];
      if (in >= 0 && (o.op->differentiable >> k & 1) && wanted[std::size_t(in)]) r[std::size_t(in)].push_back({i, k});
    }
  }
  return r;
}

/// For every parameter, the nodes that use it, ascending: gradients accumulate per use and are summed in this order.
constexpr std::vector<std::vector<use>> parameter_uses(const graph_view& g) {
  std::vector<std::vector<use>> r(g.params.size(), std::vector<use>{});
  for (int i = 0; i < g.size(); ++i)
    for (int k = 0; k < max_params; ++k) {
      const int p = g.nodes[std::size_t(i)].params[std::size_t(k)];
      if (p >= 0) r[std::size_t(p)].push_back({i, k});
    }
  return r;
}

}  // namespace fusionllm::inline v0
