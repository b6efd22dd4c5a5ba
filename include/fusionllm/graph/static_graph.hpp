// SPDX-License-Identifier: Apache-2.0
// A traced graph as a value of static storage: what `graph_of` gives a view of, and what a device's table needs beside
// it.
#pragma once

#include "tracer.hpp"

namespace fusionllm::inline v0 {

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
  std::array<int, N> source{};  ///< a node: its number in the trace, or ~(index into kinds) if it is fused
  std::array<chain_kind, max_chain_kinds> kinds{};
  int node_count = 0;
  int kind_count = 0;
  int loss = -1;
  model_problem problem = model_problem::none;
  int culprit = -1;

  constexpr std::span<const node> used_nodes() const { return {nodes.data(), std::size_t(node_count)}; }
};

}  // namespace fusionllm::inline v0
