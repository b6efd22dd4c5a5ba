// SPDX-License-Identifier: Apache-2.0
// The last step of making a graph: nodes, parameters and outputs in their order, numbered and named.
#pragma once

#include "fuse.hpp"
#include "scope_names.hpp"

namespace fusionllm::inline v0 {
namespace detail {

// Writes the nodes that are left, in order, numbered anew.
template <std::size_t N, std::size_t P, std::size_t O>
constexpr void write_nodes(static_graph<N, P, O>& g, const trace& t, const arrangement& a, int result) {
  const fused_runs runs = find_runs(g, t, a, result);
  buffer<int> number(t.nodes.size(), -1);
  int to = 0;
  for (std::size_t at = 0; at < a.order.size(); ++at) {
    const int i = a.order[at];
    if (runs.gone[i]) continue;
    node& n = g.nodes[std::size_t(to)];
    n = t.nodes[i];
    n.traced_id = int(at);
    g.source[std::size_t(to)] = i;
    if (const int run = runs.ends[i]; run >= 0) {
      make_chain(t, a, runs.of[run], n);
      g.source[std::size_t(to)] = ~runs.kind[run];
    }
    for (int& in : n.in) {
      if (in < 0) break;
      in = number[in];
    }
    for (int& p : n.params) {
      if (p < 0) break;
      p = a.param_position[p];
    }
    number[i] = to++;
  }
  g.node_count = to;
  if (result >= 0) g.loss = number[result];
  for (std::size_t k = 0; k < a.outputs.size(); ++k) g.outputs[k].node = number[t.outputs[a.outputs[k]].node];
}

// Names nodes' scopes, parameters, inputs and outputs, in their order.
template <std::size_t N, std::size_t P, std::size_t O>
constexpr void write_names(static_graph<N, P, O>& g, trace& t, const arrangement& a) {
  scope_names names(t);
  std::size_t to = 0;
  for (std::size_t at = 0; at < a.order.size(); ++at) {
    const int i = a.order[at];
    const name& scope = names.of(t.node_scope[i]);
    if (to == std::size_t(g.node_count) || g.nodes[to].traced_id != int(at)) continue;
    node& n = g.nodes[to++];
    if (!n.op->placeholder)
      n.scope = scope;
    else
      for (const auto& l : t.inputs)
        if (l.node == i) n.scope = names.of_input(t.view(l.name), std::size_t(i));
  }
  for (std::size_t k = 0; k < a.params.size(); ++k) {
    const trace::parameter_record& r = t.params[a.params[k]];
    parameter_info& p = g.params[k];
    p.path = names.of(r, k);
    p.dims = r.dims;
    p.init = r.init;
    p.decays = r.decays;
    p.momentum = r.momentum;
  }
  for (std::size_t k = 0; k < a.outputs.size(); ++k)
    g.outputs[k].path = names.of_output(t.view(t.outputs[a.outputs[k]].name), k);
}

}  // namespace detail
}  // namespace fusionllm::inline v0
