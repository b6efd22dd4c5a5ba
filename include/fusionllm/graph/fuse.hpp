// SPDX-License-Identifier: Apache-2.0
// Fusion of element-wise chains, before planning: a maximal run of element-wise operators, each the only consumer of
// the one before it, becomes one node, placed where the run's last operator was. Numbers do not change: each link
// computes what it would alone, and random numbers are keyed by positions in the unfused trace.
#pragma once

#include "arrange.hpp"
#include "static_graph.hpp"

namespace fusionllm::inline v0 {

/// The operator of a fused node; what it costs follows from its links.
struct fused_op : operator_base {
  static constexpr std::string_view name = "fused";
  static constexpr bool per_time = true;
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

namespace detail {

/// The runs of an arranged trace; nodes are meant by their numbers in the trace.
struct chain_links {
  buffer<int> next;    ///< the node that follows in a chain, -1: none
  buffer<int> before;  ///< the node that precedes
};

// An input without a cotangent would need a chain that knows of it.
constexpr bool fusible(const node& n) { return n.op->elementwise && (n.op->differentiable & 3) == 3; }

// A node continues the chain of its first input, or of its second if it commutes: if that is element-wise, too, and
// nothing else reads it or can see it.
constexpr chain_links find_chains(const trace& t, const arrangement& a, int result) {
  const std::size_t n = t.nodes.size();
  buffer<int> readers(n, 0);
  for (int i : a.order)
    for (int in : t.nodes[i].in) {
      if (in < 0) break;
      ++readers[in];
    }
  for (const auto& o : t.outputs) ++readers[o.node];
  if (result >= 0) ++readers[result];
  chain_links c{buffer<int>(n, -1), buffer<int>(n, -1)};
  for (int i : a.order) {
    const node& o = t.nodes[i];
    if (!fusible(o)) continue;
    for (std::size_t k = 0; k < (o.op->commutes ? 2u : 1u); ++k) {
      const int in = o.in[k];
      if (in < 0 || readers[in] != 1 || !fusible(t.nodes[in])) continue;
      c.next[in] = i;
      c.before[i] = in;
      break;
    }
  }
  return c;
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

/// Numbers of up to `max_links` nodes that become one.
struct run_of_nodes {
  int links = 0;
  std::array<int, max_links> node{};
  constexpr int last() const { return node[std::size_t(links - 1)]; }
};

// Makes `fused`, the run's last node, the whole run. Inputs stay numbered by the trace.
constexpr void make_chain(const trace& t, const arrangement& a, const run_of_nodes& run, node& fused) {
  fused.in = {t.nodes[run.node[0]].in[0], -1, -1, -1, -1};
  fused.links = run.links;
  int used = 1;
  for (std::size_t k = 0; k < std::size_t(run.links); ++k) {
    const node& o = t.nodes[run.node[k]];
    chain_link& link = fused.chain[k];
    link.op = o.op;
    link.attr = o.attr;
    link.traced_id = a.position[run.node[k]];
    const int side = k > 0 && o.in[0] != run.node[k - 1] ? o.in[0] : o.in[1];
    if (side < 0) continue;
    link.side = used;
    fused.in[std::size_t(used++)] = side;
  }
  fused.op = &fused_traits[inputs_saved(fused)];
}

// The number of the chain's kind, -1 if there is no room for another.
template <std::size_t N, std::size_t P, std::size_t O>
constexpr int kind_of(static_graph<N, P, O>& g, const trace& t, const run_of_nodes& run) {
  chain_kind k;
  k.links = run.links;
  for (std::size_t i = 0; i < std::size_t(run.links); ++i) {
    k.op[i] = t.nodes[run.node[i]].op;
    k.binary[i] = t.nodes[run.node[i]].in[1] >= 0;
  }
  for (int i = 0; i < g.kind_count; ++i)
    if (g.kinds[std::size_t(i)] == k) return i;
  if (g.kind_count == max_chain_kinds) return -1;
  g.kinds[std::size_t(g.kind_count)] = k;
  return g.kind_count++;
}

/// Runs of at least two nodes.
struct fused_runs {
  buffer<run_of_nodes> of;
  buffer<int> kind;   ///< of each run
  buffer<int> ends;   ///< a node: the run that it is the last of, -1: none
  buffer<bool> gone;  ///< a node: inside a run, but not its last
};

template <std::size_t N, std::size_t P, std::size_t O>
constexpr fused_runs find_runs(static_graph<N, P, O>& g, const trace& t, const arrangement& a, int result) {
  const std::size_t n = t.nodes.size();
  const chain_links c = find_chains(t, a, result);
  fused_runs r{buffer<run_of_nodes>(n / 2 + 1), buffer<int>(n / 2 + 1), buffer<int>(n, -1), buffer<bool>(n, false)};
  for (int first : a.order) {
    if (c.next[first] < 0 || c.before[first] >= 0) continue;
    for (int i = first; i >= 0;) {
      run_of_nodes run;
      for (; i >= 0 && run.links < max_links; i = c.next[i]) run.node[std::size_t(run.links++)] = i;
      const int kind = run.links > 1 ? kind_of(g, t, run) : -1;
      if (kind < 0) continue;
      for (int k = 0; k + 1 < run.links; ++k) r.gone[run.node[std::size_t(k)]] = true;
      r.ends[run.last()] = int(r.of.size());
      r.kind.push(kind);
      r.of.push(run);
    }
  }
  return r;
}

}  // namespace detail
}  // namespace fusionllm::inline v0
