// SPDX-License-Identifier: Apache-2.0
// Tokens and labels, before anything reads them: kernels take them as places in memory and check nothing.
#pragma once

#include "../core/error.hpp"
#include "../graph/node.hpp"

namespace fusionllm::inline v0 {

/// `inputs`: the model's inputs by node, (batch, ...) of `run`; null: none here. Errors: model, naming the input, for a
/// token that an embedding has no row for, or a label that a cross-entropy has no class for.
inline void check_indices(const graph_view& g, std::span<const void* const> inputs, const sizes& run) {
  for (int i = 0; i < g.size(); ++i) {
    const node& o = g.nodes[std::size_t(i)];
    const bool rows = o.op->name == "embedding", classes = o.op->name == "cross_entropy";
    const int in = rows ? o.in[0] : classes ? o.in[1] : -1;
    if (in < 0 || !g.nodes[std::size_t(in)].op->placeholder || !inputs[std::size_t(in)]) continue;
    const op_view v = g.view(i, run);
    const i64 n = rows ? v.in[0].count() : v.in[1].count(), limit = rows ? v.params[0].d[0] : v.in[0].last();
    const auto* value = static_cast<const std::int32_t*>(inputs[std::size_t(in)]);
    for (i64 k = 0; k < n; ++k)
      if ((value[k] < 0 || value[k] >= limit) && !(classes && value[k] == o.attr.n[0]))
        fail(errc::model, "element ", k, " of input '", g.nodes[std::size_t(in)].scope.view(), "' is ", value[k], ", expected 0 to ",
             limit - 1, ": the model's ", o.op->name, " has no more");
  }
}

}  // namespace fusionllm::inline v0
