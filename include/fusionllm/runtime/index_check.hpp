// SPDX-License-Identifier: Apache-2.0
// Tokens and labels, before anything reads them: kernels take them as places in memory and check nothing.
#pragma once

#include "../core/error.hpp"
#include "../graph/node.hpp"

namespace fusionllm::inline v0 {

/// `inputs`: the model's inputs by node, (batch, ...) of `run`; null: none here. Errors: model, naming the input, for an
/// integer that is no place of an operator that reads it as one: a token without a row, a label without a class.
inline void check_indices(const graph_view& g, std::span<const void* const> inputs, const sizes& run) {
  for (int i = 0; i < g.size(); ++i) {
    const node& o = g.nodes[std::size_t(i)];
    const int in = o.op->places < 0 ? -1 : o.in[std::size_t(o.op->places)];
    if (in < 0 || !g.nodes[std::size_t(in)].op->placeholder || !inputs[std::size_t(in)]) continue;
    const op_view v = g.view(i, run);
    const i64 n = v.in[std::size_t(o.op->places)].count(), limit = o.op->place_count(v);
    const auto* value = static_cast<const std::int32_t*>(inputs[std::size_t(in)]);
    for (i64 k = 0; k < n; ++k)
      if ((value[k] < 0 || value[k] >= limit) && !o.op->is_no_place(o.attr, value[k]))
        fail(errc::model, "element ", k, " of input '", g.nodes[std::size_t(in)].scope.view(), "' is ", value[k], ", expected 0 to ",
             limit - 1, ": the model's ", o.op->name, " has no more");
  }
}

}  // namespace fusionllm::inline v0
