// SPDX-License-Identifier: Apache-2.0
// Inference slices: the nodes that a named output needs (logits need no targets), and the inputs that nodes read.
#pragma once

#include <vector>

#include "node.hpp"

namespace fusionllm::inline v0 {

/// keep[i]: node i is needed to compute node `target`.
constexpr flags slice(const graph_view& g, int target) {
  flags keep(g.nodes.size(), u8(0));
  if (target < 0) return keep;
  keep[std::size_t(target)] = true;
  for (int i = target; i >= 0; --i)
    if (keep[std::size_t(i)])
      for (int in : g.nodes[std::size_t(i)].in)
        if (in >= 0) keep[std::size_t(in)] = true;
  return keep;
}

/// The model's inputs that the marked nodes read, in the order of the nodes.
constexpr std::vector<int> inputs_read_by(const graph_view& g, const flags& nodes) {
  flags read(g.nodes.size(), u8(0));
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (int in : g.nodes[i].in)
      if (nodes[i] && in >= 0 && g.nodes[std::size_t(in)].op->placeholder) read[std::size_t(in)] = 1;
  std::vector<int> r;
  for (int i = 0; i < g.size(); ++i)
    if (read[std::size_t(i)]) r.push_back(i);
  return r;
}

}  // namespace fusionllm::inline v0
