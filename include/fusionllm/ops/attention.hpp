// SPDX-License-Identifier: Apache-2.0
// Causal multi-head self-attention (Vaswani et al., arXiv 1706.03762): softmax(q k^T / sqrt(d)) v over the past.
#pragma once

#include "linear.hpp"

namespace fusionllm::inline v0 {

/// in[0]: q, k and v side by side (batch, time, 3 * features); out (batch, time, features); attr.n[0]: heads.
struct attention_op : operator_base {
  static constexpr std::string_view name = "attention";
  static constexpr unsigned saves_inputs = 0b1;
  static constexpr bool saves_output = true;
  /// The logarithm of each row's softmax denominator, (batch, heads, time): backward recomputes probabilities from it.
  static constexpr u64 saved(const op_view& v) { return u64(v.out.d[0] * v.out.d[1] * v.attr.n[0]); }
  /// Two products over the lower triangle.
  static constexpr u64 flops(const op_view& v) { return 2 * u64(v.out.count()) * u64(v.out.d[1]); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 5 * u64(v.out.count()) * u64(v.out.d[1]); }
};

/// (batch, time, features) -> the same, by Heads heads; parameters of two linears, `c_attn` and `c_proj`.
template <i64 Heads>
struct causal_attention_object : operator_object_base {
  initializer projection = normal(0.02);
  constexpr causal_attention_object initialized(initializer i) const {
    auto c = *this;
    c.projection = i;
    return c;
  }
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::rank != 3)
      return shape_mismatch<causal_attention_object<Heads>, S, rank_of<3>>{};
    else if constexpr (S::last % Heads != 0)
      return shape_mismatch<causal_attention_object<Heads>, S, last_extent_divisible_by<Heads>>{};
    else {
      auto qkv = linear<3 * S::last>.named("c_attn")(x);
      auto y = record<attention_op, real, S>(x.g, from(qkv.id), {-1, -1}, {{Heads, 0, 0}, 0});
      return linear<S::last>.named("c_proj").initialized(projection)(y);
    }
  }
};
template <i64 Heads>
inline constexpr causal_attention_object<Heads> causal_attention{};

}  // namespace fusionllm::inline v0
