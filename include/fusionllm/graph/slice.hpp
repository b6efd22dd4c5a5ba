// SPDX-License-Identifier: Apache-2.0
// Inference slices: the nodes that a named output needs. Logits need no targets.
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

}  // namespace fusionllm::inline v0
