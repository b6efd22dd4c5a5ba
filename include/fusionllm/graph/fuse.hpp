// SPDX-License-Identifier: Apache-2.0
// Fusion of element-wise chains, before planning: a maximal run of element-wise operators, each the only consumer of the
// one before it, becomes one node, placed where the run's last operator was. Numbers do not change: each link computes
// what it would alone, and random numbers are keyed by positions in the unfused trace.
#pragma once

#include <vector>

#include "tracer.hpp"

namespace fusionllm::inline v0 {

/// The operator of a fused node; what it costs and saves follows from its links.
struct fused_op : operator_base {
  static constexpr std::string_view name = "fused";
  static constexpr unsigned saves_inputs = ~0u;  ///< backward recomputes the chain in registers
};

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

namespace detail {

struct fused_trace {
  std::vector<node> nodes;
  std::vector<named_output> outputs;
  std::vector<chain_kind> kinds;
  std::vector<int> kind_of;  ///< a node: index into kinds, -1 if not fused
  int loss = -1;
};

constexpr chain_kind kind_of(const node& n) {
  chain_kind k;
  k.links = n.links;
  for (int i = 0; i < n.links; ++i) {
    k.op[std::size_t(i)] = n.chain[std::size_t(i)].op;
    k.binary[std::size_t(i)] = n.chain[std::size_t(i)].side >= 0;
  }
  return k;
}

// Which node follows i in a chain: its only consumer, element-wise, reading i as first input, i not visible otherwise.
constexpr std::vector<int> chain_successors(const trace& t, int loss) {
  const int n = int(t.nodes.size());
  std::vector<int> uses(std::size_t(n), 0), next(std::size_t(n), -1);
  for (int i = 0; i < n; ++i)
    for (int in : t.nodes[std::size_t(i)].in)
      if (in >= 0) {
        ++uses[std::size_t(in)];
        next[std::size_t(in)] = i;
      }
  for (const auto& o : t.outputs) ++uses[std::size_t(o.node)];
  if (loss >= 0) ++uses[std::size_t(loss)];
  for (int i = 0; i < n; ++i) {
    const int j = next[std::size_t(i)];
    const bool chained = uses[std::size_t(i)] == 1 && j >= 0 && t.nodes[std::size_t(i)].op->elementwise &&
                         t.nodes[std::size_t(j)].op->elementwise;
    if (!chained) next[std::size_t(i)] = -1;
  }
  return next;
}

// The fused node of the operators in `run`, with inputs still numbered by the trace. A link that reads its predecessor
// as second input is only fused if it commutes, which the caller has checked.
constexpr node make_chain(const trace& t, const std::vector<int>& run) {
  node f = t.nodes[std::size_t(run.back())];
  const node& head = t.nodes[std::size_t(run.front())];
  f.op = &traits_of<fused_op>;
  f.kernels = nullptr;
  f.in = {-1, -1, -1, -1, -1};
  f.in[0] = head.in[0];
  int used = 1;
  f.links = int(run.size());
  for (std::size_t k = 0; k < run.size(); ++k) {
    const node& o = t.nodes[std::size_t(run[k])];
    chain_link& link = f.chain[k];
    link.op = o.op;
    link.attr = o.attr;
    link.traced_id = o.traced_id;
    int side = o.in[1];
    if (k > 0 && side == run[k - 1]) side = o.in[0];
    if (side >= 0) {
      link.side = used;
      f.in[std::size_t(used++)] = side;
    }
  }
  return f;
}

constexpr fused_trace fuse(const trace& t, int loss) {
  const int n = int(t.nodes.size());
  const auto next = chain_successors(t, loss);
  flags inside(std::size_t(n), u8(0));
  std::vector<std::vector<int>> run_of(std::size_t(n), std::vector<int>{});
  for (int i = 0; i < n; ++i) {
    if (inside[std::size_t(i)] || next[std::size_t(i)] < 0) continue;
    std::vector<int> run{i};
    int k = i;
    while (next[std::size_t(k)] >= 0 && int(run.size()) < max_links) {
      const int j = next[std::size_t(k)];
      // x - y read backwards would need another order of arguments: only `add` and `multiply` commute.
      const node& o = t.nodes[std::size_t(j)];
      if (o.in[1] == k && o.op->name != "add" && o.op->name != "multiply") break;
      run.push_back(j);
      k = j;
    }
    if (run.size() < 2) continue;
    for (int j : run) inside[std::size_t(j)] = true;
    run_of[std::size_t(run.back())] = run;
  }
  fused_trace r;
  r.nodes.reserve(std::size_t(n));
  r.kind_of.reserve(std::size_t(n));
  std::vector<int> renumbered(std::size_t(n), -1);
  for (int i = 0; i < n; ++i) {
    const bool ends_run = !run_of[std::size_t(i)].empty();
    if (inside[std::size_t(i)] && !ends_run) continue;
    node f = ends_run ? make_chain(t, run_of[std::size_t(i)]) : t.nodes[std::size_t(i)];
    for (auto& in : f.in)
      if (in >= 0) in = renumbered[std::size_t(in)];
    int kind = -1;
    if (ends_run) {
      const chain_kind c = kind_of(f);
      for (kind = 0; kind < int(r.kinds.size()) && !(r.kinds[std::size_t(kind)] == c);) ++kind;
      if (kind == int(r.kinds.size())) r.kinds.push_back(c);
    }
    renumbered[std::size_t(i)] = int(r.nodes.size());
    r.nodes.push_back(f);
    r.kind_of.push_back(kind);
  }
  for (auto o : t.outputs) r.outputs.push_back({o.path, renumbered[std::size_t(o.node)]});
  if (loss >= 0) r.loss = renumbered[std::size_t(loss)];
  return r;
}

}  // namespace detail
}  // namespace fusionllm::inline v0
