// SPDX-License-Identifier: Apache-2.0
// Causal multi-head self-attention (Vaswani et al., arXiv 1706.03762): softmax(q k^T / sqrt(d)) v over the past. Groups
// of query heads may share one head of keys and values (Ainslie et al., arXiv 2305.13245).
#pragma once

#include "linear.hpp"

namespace fusionllm::inline v0 {

/// in[0]: q, k and v side by side (batch, time, (heads + 2 kv_heads) * width); or in[0], in[1], in[2]: q (batch, time,
/// heads * width), k and v (batch, time, kv_heads * width). out (batch, time, heads * width). attr.n: heads, and heads
/// of keys and values (0: as many).
struct attention_op : operator_base {
  static constexpr std::string_view name = "attention";
  static constexpr unsigned saves_inputs = 0b111;
  static constexpr bool saves_output = true;
  static constexpr bool per_time = true;
  /// Keys, then values, (batch, time, kv_heads * width) each.
  static constexpr u64 state(const op_view& v) {
    return 2 * u64(v.out.count()) / u64(v.attr.n[0]) * u64(v.attr.n[1] ? v.attr.n[1] : v.attr.n[0]);
  }
  /// The logarithm of each row's softmax denominator, (batch, heads, time): backward recomputes probabilities from it.
  static constexpr u64 saved(const op_view& v) { return u64(v.out.d[0] * v.out.d[1] * v.attr.n[0]); }
  /// Two products over the lower triangle.
  static constexpr u64 flops(const op_view& v) { return 2 * u64(v.out.count()) * u64(v.out.d[1]); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 5 * u64(v.out.count()) * u64(v.out.d[1]); }
};

namespace detail {
template <i64 Heads, i64 KvHeads>
constexpr attributes attention_attributes() {
  return {{Heads, KvHeads == Heads ? 0 : KvHeads, 0}, 0};
}
}  // namespace detail

/// Causal attention of Heads heads q (batch, time, Heads * width) to KvHeads heads of k and v (batch, time, KvHeads *
/// width): heads h * Heads / KvHeads and on read head h of keys and values. Out: as q.
template <i64 Heads, i64 KvHeads = Heads, class Q, class K, class V, class G>
constexpr auto grouped_attention(tensor<real, Q, G> q, tensor<real, K, G> k, tensor<real, V, G> v) {
  static_assert(KvHeads > 0 && Heads % KvHeads == 0, "the heads of keys and values divide the heads of queries");
  if constexpr (Q::rank != 3)
    return shape_mismatch<attention_op, Q, rank_of<3>>{};
  else if constexpr (Q::last < 0 || Q::last % Heads != 0)
    return shape_mismatch<attention_op, Q, last_extent_divisible_by<Heads>>{};
  else {
    using shared = with_last<Q, Q::last / Heads * KvHeads>;
    if constexpr (!std::is_same_v<K, shared>)
      return shape_mismatch<attention_op, K, shared>{};
    else if constexpr (!std::is_same_v<V, shared>)
      return shape_mismatch<attention_op, V, shared>{};
    else
      return record<attention_op, real, Q>(q.g, from(q.id, k.id, v.id), {-1, -1},
                                           detail::attention_attributes<Heads, KvHeads>());
  }
}

/// (batch, time, features) -> the same, by Heads heads, of which each Heads / KvHeads share keys and values; parameters
/// of two linears, `c_attn` and `c_proj`.
template <i64 Heads, i64 KvHeads = Heads>
struct causal_attention_object : operator_object_base {
  static_assert(KvHeads > 0 && Heads % KvHeads == 0, "the heads of keys and values divide the heads of queries");
  initializer input = fan_in, projection = normal(0.02);
  constexpr causal_attention_object initialized(initializer i) const {
    auto c = *this;
    c.projection = i;
    return c;
  }
  /// `c_attn` by the first, `c_proj` by the second.
  constexpr causal_attention_object initialized(initializer qkv, initializer output) const {
    auto c = *this;
    c.input = qkv;
    c.projection = output;
    return c;
  }
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::rank != 3)
      return shape_mismatch<causal_attention_object, S, rank_of<3>>{};
    else if constexpr (S::last % Heads != 0)
      return shape_mismatch<causal_attention_object, S, last_extent_divisible_by<Heads>>{};
    else {
      constexpr i64 width = S::last / Heads;
      auto qkv = linear<(Heads + 2 * KvHeads) * width>.named("c_attn").initialized(input)(x);
      auto y = record<attention_op, real, S>(x.g, from(qkv.id), {-1, -1},
                                             detail::attention_attributes<Heads, KvHeads>());
      return linear<S::last>.named("c_proj").initialized(projection)(y);
    }
  }
};
template <i64 Heads, i64 KvHeads = Heads>
inline constexpr causal_attention_object<Heads, KvHeads> causal_attention{};

}  // namespace fusionllm::inline v0
