// SPDX-License-Identifier: Apache-2.0
// When each value is alive in one training micro-batch that runs on one peer: forward of node i is instant i, backward
// of node i is instant 2N-1-i.
#pragma once

#include <vector>

#include "autodiff.hpp"
#include "cost.hpp"

namespace fusionllm::inline v0 {

/// Both ends are included.
struct live_range {
  int first = 0;
  int last = 0;
};

/// Does backward read the output of node i, for itself or for a consumer?
constexpr bool kept_for_backward(const graph_view& g, int i, const flags& wanted) {
  if (wanted[std::size_t(i)] && g.nodes[std::size_t(i)].op->saves_output) return true;
  for (int j = i + 1; j < g.size(); ++j) {
    const node& c = g.nodes[std::size_t(j)];
    for (std::size_t k = 0; k < max_inputs; ++k)
      if (c.in[k] == i && wanted[std::size_t(j)] && (c.op->saves_inputs >> k & 1)) return true;
  }
  return false;
}

/// Live ranges of all node outputs.
constexpr std::vector<live_range> live_ranges(const graph_view& g) {
  const auto wanted = nodes_with_cotangent(g);
  const int n = g.size();
  std::vector<live_range> r(g.nodes.size(), live_range{});
  for (int i = 0; i < n; ++i) r[std::size_t(i)] = {i, i};
  for (int i = 0; i < n; ++i) {
    const node& o = g.nodes[std::size_t(i)];
    for (std::size_t k = 0; k < max_inputs; ++k) {
      if (o.in[k] < 0) continue;
      live_range& in = r[std::size_t(o.in[k])];
      if (i > in.last) in.last = i;
      const int back = 2 * n - 1 - i;
      if (wanted[std::size_t(i)] && (o.op->saves_inputs >> k & 1) && back > in.last) in.last = back;
    }
    if (wanted[std::size_t(i)] && o.op->saves_output) {
      const int back = 2 * n - 1 - i;
      if (back > r[std::size_t(i)].last) r[std::size_t(i)].last = back;
    }
  }
  return r;
}

/// Largest sum of live outputs at any instant, in bytes: a lower bound for one peer's activation memory.
constexpr u64 peak_activation_bytes(const graph_view& g, const sizes& s, u64 real_bytes = 4) {
  const auto ranges = live_ranges(g);
  u64 peak = 0;
  for (int t = 0; t < 2 * g.size(); ++t) {
    u64 now = 0;
    for (int i = 0; i < g.size(); ++i)
      if (ranges[std::size_t(i)].first <= t && t <= ranges[std::size_t(i)].last)
        now += output_bytes(g, i, s, real_bytes);
    if (now > peak) peak = now;
  }
  return peak;
}

}  // namespace fusionllm::inline v0
