// SPDX-License-Identifier: Apache-2.0
// What operators cost: constexpr functions of a graph and its run-time extents, the same numbers for the planner, the
// simulator and the run.
#pragma once

#include "node.hpp"

namespace fusionllm::inline v0 {

/// Costs of one node on one micro-batch. Bytes are for `real` of the given width.
struct node_cost {
  u64 flops_forward = 0;
  u64 flops_backward = 0;  ///< cotangents of inputs and gradients of parameters
  u64 output_bytes = 0;    ///< what an edge from this node carries
  u64 saved_bytes = 0;     ///< left by forward for backward, beside inputs and output
  u64 workspace_bytes = 0;
  u64 state_bytes = 0;  ///< in decoding only
  u64 moved_bytes = 0;  ///< read and written by one forward: inputs, parameters, output
};

constexpr u64 element_bytes(element e, u64 real_bytes) { return e == element::i32 ? 4 : real_bytes; }

/// Bytes of node i's output.
constexpr u64 output_bytes(const graph_view& g, int i, const sizes& s, u64 real_bytes = 4) {
  const node& n = g.nodes[std::size_t(i)];
  return u64(n.out.resolve(s).count()) * element_bytes(n.type, real_bytes);
}

constexpr node_cost cost_of(const graph_view& g, int i, const sizes& s, u64 real_bytes = 4) {
  const node& n = g.nodes[std::size_t(i)];
  const op_view v = g.view(i, s);
  node_cost c;
  c.output_bytes = output_bytes(g, i, s, real_bytes);
  if (n.op->placeholder) return c;
  c.saved_bytes = n.op->saved(v) * (real_bytes < 4 ? 4 : real_bytes);  // fp32 where activations have 16 bits
  c.workspace_bytes = n.op->workspace(v) * real_bytes;
  c.state_bytes = n.op->state(v) * real_bytes;
  if (n.links) {
    for (int l = 0; l < n.links; ++l) {
      c.flops_forward += n.chain[std::size_t(l)].op->flops(v);
      c.flops_backward += n.chain[std::size_t(l)].op->flops(v) + n.chain[std::size_t(l)].op->flops_backward_input(v);
    }
  } else {
    c.flops_forward = n.op->flops(v);
    c.flops_backward = n.op->flops_backward_input(v) + n.op->flops_backward_weight(v);
  }
  c.moved_bytes = c.output_bytes;
  for (std::size_t k = 0; k < max_inputs; ++k)
    if (n.in[k] >= 0) c.moved_bytes += output_bytes(g, n.in[k], s, real_bytes);
  for (std::size_t k = 0; k < max_params; ++k)
    if (n.params[k] >= 0) c.moved_bytes += g.params[std::size_t(n.params[k])].count() * real_bytes;
  return c;
}

/// Floating-point operations of a whole training micro-batch.
constexpr u64 training_flops(const graph_view& g, const sizes& s) {
  u64 n = 0;
  for (int i = 0; i < g.size(); ++i) {
    const node_cost c = cost_of(g, i, s);
    n += c.flops_forward + c.flops_backward;
  }
  return n;
}

}  // namespace fusionllm::inline v0
