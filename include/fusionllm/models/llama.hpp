// SPDX-License-Identifier: Apache-2.0
// A model after Llama (Touvron et al., arXiv 2302.13971 and 2307.09288): root mean square norms, rotary positions,
// grouped-query attention, SwiGLU (Shazeer, arXiv 2002.05202), no biases. Names are those of transformers' Llama.
//
//   struct own : fl::llama<fl::llama_config{.layers = 6, .width = 384, .heads = 6, .kv_heads = 2, .hidden = 1024}> {};
#pragma once

#include "../ops/add.hpp"
#include "../ops/attention.hpp"
#include "../ops/embedding.hpp"
#include "../ops/loss.hpp"
#include "../ops/multiply.hpp"
#include "../ops/rms_norm.hpp"
#include "../ops/rotary.hpp"
#include "../ops/silu.hpp"

namespace fusionllm::inline v0 {

/// What one of them differs in from another.
struct llama_config {
  int layers = 6;
  i64 width = 384;
  i64 heads = 6;      ///< divides the width
  i64 kv_heads = 6;   ///< of keys and values, divides `heads`
  i64 hidden = 1024;  ///< of the mlp
  i64 vocabulary = 32000;
  double theta = 10000;
  double epsilon = 1e-5;
  bool tied = false;  ///< the head is the embedding
  i64 ignore = -100;  ///< the target that does not count
};

/// (batch, time, features) -> the same: attention of Heads heads to KvHeads heads of keys and values, with rotary
/// positions; four linears without biases, `q_proj`, `k_proj`, `v_proj` and `o_proj`.
template <i64 Heads, i64 KvHeads = Heads>
struct rotary_attention_object : operator_object_base {
  double theta = 10000;
  initializer init = normal(0.02);
  constexpr rotary_attention_object with_theta(double t) const {
    auto c = *this;
    c.theta = t;
    return c;
  }
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::rank != 3)
      return shape_mismatch<rotary_attention_object, S, rank_of<3>>{};
    else if constexpr (S::last < 0 || S::last % (2 * Heads) != 0)
      return shape_mismatch<rotary_attention_object, S, last_extent_divisible_by<2 * Heads>>{};
    else {
      constexpr i64 width = S::last / Heads;
      auto q = project_to<S::last>("q_proj", x) | rotary<width>.with_theta(theta);
      auto k = project_to<KvHeads * width>("k_proj", x) | rotary<width>.with_theta(theta);
      auto v = project_to<KvHeads * width>("v_proj", x);
      return project_to<S::last>("o_proj", grouped_attention<Heads, KvHeads>(q, k, v));
    }
  }

 private:
  template <i64 Out>
  constexpr auto project_to(std::string_view name, auto x) const {
    return linear<Out>.named(name).without_bias().initialized(init)(x);
  }
};
template <i64 Heads, i64 KvHeads = Heads>
inline constexpr rotary_attention_object<Heads, KvHeads> rotary_attention{};

/// (..., features) -> the same: down(silu(gate x) * up x), `gate_proj`, `up_proj` (Hidden wide) and `down_proj`.
template <i64 Hidden>
struct swiglu_object : operator_object_base {
  initializer init = normal(0.02);
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    const auto wide = linear<Hidden>.without_bias().initialized(init);
    auto gate = wide.named("gate_proj")(x) | silu;
    auto up = wide.named("up_proj")(x);
    return linear<S::last>.named("down_proj").without_bias().initialized(init)(gate * up);
  }
};
template <i64 Hidden>
inline constexpr swiglu_object<Hidden> swiglu{};

namespace detail {
/// (batch, time, width) -> the same.
template <llama_config C>
constexpr auto llama_block() {
  constexpr auto norm = rms_norm.with_epsilon(C.epsilon);
  const auto attention = rotary_attention<C.heads, C.kv_heads>.with_theta(C.theta);
  return residual(norm.named("input_layernorm") | scoped("self_attn", attention))
         | residual(norm.named("post_attention_layernorm") | scoped("mlp", swiglu<C.hidden>));
}
}  // namespace detail

/// Inputs `tokens` and `targets` (batch, time); output `logits` (batch, time, vocabulary); the loss is cross-entropy.
template <llama_config C>
struct llama {
  static constexpr llama_config config = C;

  static constexpr auto define(auto& g) {
    auto tokens = input<i32, batch, time>(g, "tokens");
    auto targets = input<i32, batch, time>(g, "targets");
    auto table = parameter<C.vocabulary, C.width>(g, "model.embed_tokens.weight", normal(0.02));
    auto x = embedding(tokens, table) | repeat<C.layers>(detail::llama_block<C>(), "model.layers")
             | rms_norm.named("model.norm").with_epsilon(C.epsilon);
    return cross_entropy(output("logits", head(x, table)), targets, C.ignore);
  }

 private:
  static constexpr auto head(auto x, auto table) {
    if constexpr (C.tied)
      return project(x, table);
    else
      return linear<C.vocabulary>.named("lm_head").without_bias().initialized(normal(0.02))(x);
  }
};

}  // namespace fusionllm::inline v0
