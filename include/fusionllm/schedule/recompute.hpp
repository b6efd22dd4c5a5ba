// SPDX-License-Identifier: Apache-2.0
// Which values a peer drops after forward and computes again in backward, to save memory (after Chen et al., arXiv
// 1604.06174). A value that backward asks for is made again from what was kept, once a micro-batch, by the same kernel
// with the same random numbers: a policy changes time and memory, never results.
#pragma once

#include <string_view>

#include "../graph/live_range.hpp"
#include "plan.hpp"

namespace fusionllm::inline v0 {

/// The repeated part of a model that a scope lies in: up to its first component that is a number ("h.3.mlp.c_fc" is in
/// "h.3", "layer1.0.conv1" in "layer1.0"); empty where there is none.
constexpr std::string_view block_of(std::string_view scope) {
  for (std::size_t begin = 0; begin < scope.size();) {
    std::size_t end = scope.find('.', begin);
    if (end == std::string_view::npos) end = scope.size();
    bool number = end > begin;
    for (std::size_t i = begin; i < end; ++i) number = number && scope[i] >= '0' && scope[i] <= '9';
    if (number) return scope.substr(0, end);
    begin = end + 1;
  }
  return {};
}

namespace detail {

inline flags dropped_in_blocks(const graph_view& g, const flags& wanted) {
  flags r(g.nodes.size(), u8(0));
  const auto block = [&](int i) { return block_of(g.nodes[std::size_t(i)].scope.view()); };
  for (int i = 0; i < g.size(); ++i)
    r[std::size_t(i)] = wanted[std::size_t(i)] && i != g.loss && !g.nodes[std::size_t(i)].op->placeholder && !block(i).empty();
  for (int i = 0; i < g.size(); ++i)
    for (int in : g.nodes[std::size_t(i)].in)
      if (in >= 0 && block(in) != block(i)) r[std::size_t(in)] = 0;  // what leaves a block is kept
  return r;
}

/// Floating-point operations that a kept byte may be worth at most: element-wise operators and norms cost 1 to 6 a byte,
/// products of matrices hundreds.
inline constexpr u64 cheap_flops_per_byte = 8;
/// Costs are compared at these extents; for cheap operators the comparison does not depend on them.
inline constexpr sizes cheap_at{1, 256};

// A value is worth dropping if it costs little, and if all that it is made from is there in backward anyway.
inline flags dropped_where_cheap(const graph_view& g, const flags& wanted) {
  flags r(g.nodes.size(), u8(0)), kept(g.nodes.size(), u8(0));
  for (int i = 0; i < g.size(); ++i) kept[std::size_t(i)] = kept_for_backward(g, i, wanted);
  for (int i = 0; i < g.size(); ++i) {
    const node& o = g.nodes[std::size_t(i)];
    if (o.op->placeholder || i == g.loss || !wanted[std::size_t(i)]) continue;
    const node_cost c = cost_of(g, i, cheap_at);
    const u64 saved = (kept[std::size_t(i)] ? c.output_bytes : 0) + c.saved_bytes;
    bool drop = saved >= c.output_bytes && c.flops_forward <= cheap_flops_per_byte * saved;
    for (int in : o.in)
      drop = drop && (in < 0 || g.nodes[std::size_t(in)].op->placeholder || kept[std::size_t(in)]);
    r[std::size_t(i)] = drop;
  }
  return r;
}

}  // namespace detail

/// Nodes whose output and saved values do not stay from forward to backward on the peer that runs them.
inline flags dropped_nodes(const graph_view& g, recompute_policy policy) {
  if (policy == recompute_policy::none) return flags(g.nodes.size(), u8(0));
  const flags wanted = nodes_with_cotangent(g);
  return policy == recompute_policy::block ? detail::dropped_in_blocks(g, wanted) : detail::dropped_where_cheap(g, wanted);
}

/// Finds what has to be made again while backward goes through nodes in its order.
class rerun_finder {
 public:
  rerun_finder(const graph_view& g, const flags& dropped) : g_(g), dropped_(dropped), done_(g.nodes.size(), u8(0)) {}

  /// Calls f(node), inputs first, for each node that must run again before the backward of `n`. `here(node)`: whether the
  /// node runs on the same peer; what comes from others is kept.
  template <class Here, class F>
  void before(int n, Here&& here, F&& f) {
    const node& o = g_.nodes[std::size_t(n)];
    for (std::size_t k = 0; k < max_inputs; ++k)
      if (o.in[k] >= 0 && (o.op->saves_inputs >> k & 1)) demand(o.in[k], here, f);
    if (o.op->saves_output || o.op->saved(g_.view(n, detail::cheap_at)) > 0) demand(n, here, f);
  }

 private:
  template <class Here, class F>
  void demand(int v, Here&& here, F&& f) {
    if (!dropped_[std::size_t(v)] || done_[std::size_t(v)] || !here(v)) return;
    done_[std::size_t(v)] = 1;
    for (int in : g_.nodes[std::size_t(v)].in)
      if (in >= 0) demand(in, here, f);
    f(v);
  }

  const graph_view& g_;
  const flags& dropped_;
  flags done_;
};

}  // namespace fusionllm::inline v0
