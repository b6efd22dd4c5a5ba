// SPDX-License-Identifier: Apache-2.0
// Runs one node of a graph on some device, on data drawn from a seed, and gives back all that it wrote.
#pragma once

#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include <fusionllm/device/kernel.hpp>

namespace seam {

namespace fl = fusionllm;
using numbers = std::vector<float>;

/// Memory that the host reads itself.
struct host_memory {
  std::deque<numbers> kept;
  void* put(const numbers& x) { return kept.emplace_back(x).data(); }
  numbers get(const void* p, std::size_t n) const {
    return numbers(static_cast<const float*>(p), static_cast<const float*>(p) + n);
  }
};

inline numbers drawn(std::size_t n, fl::u32 stream) {
  numbers x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = 4 * fl::uniform(fl::random_word({17, 0, 0, stream}, i)) - 2;
  return x;
}

struct node_case {
  fl::graph_view graph;
  int node;
  fl::sizes sizes;
  fl::pass mode = fl::pass::training;
  bool partials = false;  ///< backward adds to partial sums of cotangents
};

/// Everything that the node's functions write: out, the cotangents of its inputs, the gradients of its parameters.
struct node_results {
  numbers out;
  std::vector<numbers> d_in, d_param;
};

template <class Memory>
node_results run_node(const node_case& c, const fl::kernel_table& table, fl::device_context& context, Memory& memory) {
  const fl::node& n = c.graph.nodes[std::size_t(c.node)];
  const fl::op_view view = c.graph.view(c.node, c.sizes);
  const auto tensor = [&](const fl::extents& dims, fl::u32 stream) {
    return fl::tensor_ref{memory.put(drawn(std::size_t(dims.count()), stream)), dims};
  };
  fl::kernel_args a;
  a.op = &n;
  a.mode = c.mode;
  a.key = {99, 5, 3, fl::u32(n.traced_id)};
  for (std::size_t i = 0; i < std::size_t(n.input_count()); ++i) a.in[i] = tensor(view.in[i], fl::u32(i));
  for (std::size_t i = 0; i < std::size_t(n.param_count()); ++i) a.param[i] = tensor(view.params[i], fl::u32(10 + i));
  a.out = tensor(view.out, 20);
  a.workspace = memory.put(numbers(table.workspace_bytes(view) / sizeof(float) + 1));
  node_results r;
  const auto read = [&](const fl::tensor_ref& t) { return memory.get(t.data, std::size_t(t.count())); };
  table.forward(context, a);
  r.out = read(a.out);
  if (c.mode == fl::pass::inference) return r;

  a.out = {};
  a.d_out = tensor(view.out, 30);
  for (std::size_t i = 0; i < std::size_t(n.input_count()); ++i) {
    if (!(n.op->saves_inputs >> i & 1)) a.in[i] = {};
    a.d_in[i] = tensor(view.in[i], fl::u32(40 + i));
    if (c.partials && table.adds_partial) a.d_partial[i] = tensor(view.in[i], fl::u32(50 + i));
  }
  table.backward_input(context, a);
  for (std::size_t i = 0; i < std::size_t(n.input_count()); ++i) r.d_in.push_back(read(a.d_in[i]));
  if (!table.backward_weight) return r;
  for (std::size_t i = 0; i < std::size_t(n.param_count()); ++i)
    a.d_param[i] = tensor(view.params[i], fl::u32(60 + i));
  table.backward_weight(context, a);
  for (std::size_t i = 0; i < std::size_t(n.param_count()); ++i) r.d_param.push_back(read(a.d_param[i]));
  return r;
}

}  // namespace seam
