// SPDX-License-Identifier: Apache-2.0
// Fusion of element-wise chains, before planning: a maximal run of element-wise operators, each the only consumer of the
// one before it, becomes one node, placed where the run's last operator was. Numbers do not change: each link computes
// what it would alone, and random numbers are keyed by positions in the unfused trace.
#pragma once

#include "tracer.hpp"

namespace fusionllm::inline v0 {

/// The operator of a fused node; what it costs follows from its links.
struct fused_op : operator_base {
  static constexpr std::string_view name = "fused";
};

namespace detail {

// One operator for each set of inputs that a chain's backward reads: it recomputes what it needs in registers.
constexpr auto make_fused_traits() {
  std::array<operator_traits, 1u << max_inputs> t{};
  for (unsigned saves = 0; saves < t.size(); ++saves) {
    t[saves] = traits_of<fused_op>;
    t[saves].saves_inputs = saves;
  }
  return t;
}
inline constexpr auto fused_traits = make_fused_traits();

}  // namespace detail

/// The distinct chains of a graph: what a device instantiates.
struct chain_kind {
  int links = 0;
  std::array<const operator_traits*, max_links> op{};
  std::array<bool, max_links> binary{};
  /// By hand: std::array's comparison orders pointers, which no constant expression may.
  constexpr bool operator==(const chain_kind& o) const {
    if (links != o.links) return false;
    for (std::size_t i = 0; i < std::size_t(max_links); ++i)
      if (op[i] != o.op[i] || binary[i] != o.binary[i]) return false;
    return true;
  }
};
/// A model with more keeps the chains of further kinds unfused.
inline constexpr int max_chain_kinds = 32;

/// A graph in static storage, with room for what was traced and as much of it in use as fusion left.
template <std::size_t N, std::size_t P, std::size_t O>
struct static_graph {
  std::array<node, N> nodes{};
  std::array<parameter_info, P> params{};
  std::array<named_output, O> outputs{};
  std::array<int, N> kind_of{};  ///< a node: index into kinds, -1 if not fused
  std::array<chain_kind, max_chain_kinds> kinds{};
  int node_count = 0;
  int kind_count = 0;
  int loss = -1;
  model_problem problem = model_problem::none;
  int culprit = -1;

  constexpr std::span<const node> used_nodes() const { return {nodes.data(), std::size_t(node_count)}; }
};

namespace detail {

// An input without a cotangent would need a chain that knows of it.
constexpr bool fusible(const node& n) { return n.op->elementwise && (n.op->differentiable & 3) == 3; }

// For every node the one that follows it in a chain, or -1: its only consumer, element-wise, and nothing else sees it.
template <std::size_t N, std::size_t P, std::size_t O>
constexpr std::vector<int> chain_successors(const static_graph<N, P, O>& g) {
  std::vector<int> next(N, -1);  // -2: several consumers, or visible otherwise
  for (std::size_t i = 0; i < N; ++i)
    for (int in : g.nodes[i].in) {
      if (in < 0) break;
      next[std::size_t(in)] = next[std::size_t(in)] == -1 ? int(i) : -2;
    }
  for (const auto& o : g.outputs) next[std::size_t(o.node)] = -2;
  if (g.loss >= 0) next[std::size_t(g.loss)] = -2;
  for (std::size_t i = 0; i < N; ++i) {
    int& j = next[i];
    if (j < 0) continue;
    const node& n = g.nodes[std::size_t(j)];
    // Read as second input, a predecessor can only be a link if the operator commutes.
    if (!fusible(g.nodes[i]) || !fusible(n) || (n.in[1] == int(i) && !n.op->commutes)) j = -1;
  }
  return next;
}

// Bit i: backward reads input i of the chain. A link that reads its own first input needs all that leads to it.
constexpr unsigned inputs_saved(const node& chain) {
  unsigned saves = 0;
  int last = -1;
  for (int k = 0; k < chain.links; ++k) {
    const chain_link& l = chain.chain[std::size_t(k)];
    if (l.op->saves_inputs & 1) last = k;
    if (l.side >= 0 && (l.op->saves_inputs & 2)) saves |= 1u << l.side;
  }
  for (int k = 0; k < last; ++k)
    if (const int side = chain.chain[std::size_t(k)].side; side >= 0) saves |= 1u << side;
  return last >= 0 ? saves | 1u : saves;
}

// Turns the run's last node into the fused one; links' sides are still numbered by the trace.
template <std::size_t N, std::size_t P, std::size_t O>
constexpr void make_chain(static_graph<N, P, O>& g, const std::vector<int>& run) {
  node fused = g.nodes[std::size_t(run.back())];
  fused.in = {g.nodes[std::size_t(run.front())].in[0], -1, -1, -1, -1};
  fused.links = int(run.size());
  int used = 1;
  for (std::size_t k = 0; k < run.size(); ++k) {
    const node& o = g.nodes[std::size_t(run[k])];
    chain_link& link = fused.chain[k];
    link.op = o.op;
    link.attr = o.attr;
    link.traced_id = o.traced_id;
    const int side = k > 0 && o.in[1] == run[k - 1] ? o.in[0] : o.in[1];
    if (side < 0) continue;
    link.side = used;
    fused.in[std::size_t(used++)] = side;
  }
  fused.op = &fused_traits[inputs_saved(fused)];
  g.nodes[std::size_t(run.back())] = fused;
}

// The number of the chain's kind, -1 if there is no room for another.
template <std::size_t N, std::size_t P, std::size_t O>
constexpr int kind_of(static_graph<N, P, O>& g, const std::vector<int>& run) {
  chain_kind k;
  k.links = int(run.size());
  for (std::size_t i = 0; i < run.size(); ++i) {
    k.op[i] = g.nodes[std::size_t(run[i])].op;
    k.binary[i] = g.nodes[std::size_t(run[i])].in[1] >= 0;
  }
  for (int i = 0; i < g.kind_count; ++i)
    if (g.kinds[std::size_t(i)] == k) return i;
  if (g.kind_count == max_chain_kinds) return -1;
  g.kinds[std::size_t(g.kind_count)] = k;
  return g.kind_count++;
}

// Fuses in place: chains first, then all nodes move up over those that are gone.
template <std::size_t N, std::size_t P, std::size_t O>
constexpr void fuse(static_graph<N, P, O>& g) {
  const std::vector<int> next = chain_successors(g);
  flags visited(N, u8(0)), gone(N, u8(0));
  g.kind_of.fill(-1);
  for (std::size_t i = 0; i < N; ++i) {
    if (visited[i] || next[i] < 0) continue;
    std::vector<int> run{int(i)};
    while (next[std::size_t(run.back())] >= 0 && int(run.size()) < max_links) run.push_back(next[std::size_t(run.back())]);
    const int kind = kind_of(g, run);
    for (int j : run) visited[std::size_t(j)] = 1;
    if (kind < 0) continue;
    make_chain(g, run);
    for (int j : run) gone[std::size_t(j)] = j != run.back();
    g.kind_of[std::size_t(run.back())] = kind;
  }
  std::vector<int> renumbered(N, -1);
  std::size_t to = 0;
  for (std::size_t i = 0; i < N; ++i) {
    if (gone[i]) continue;
    if (to != i) {
      g.nodes[to] = g.nodes[i];
      g.kind_of[to] = g.kind_of[i];
    }
    for (int& in : g.nodes[to].in) {
      if (in < 0) break;
      in = renumbered[std::size_t(in)];
    }
    renumbered[i] = int(to++);
  }
  g.node_count = int(to);
  for (auto& o : g.outputs) o.node = renumbered[std::size_t(o.node)];
  if (g.loss >= 0) g.loss = renumbered[std::size_t(g.loss)];
}

}  // namespace detail
}  // namespace fusionllm::inline v0
