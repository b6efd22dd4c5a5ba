// SPDX-License-Identifier: Apache-2.0
// GPT-2 (Radford et al., 2019), in its four published sizes and in any other: learned positions, tied embedding, norms
// before attention and mlp. Names, epsilon and initial values are those of the published model.
//
//   using trainer = fl::trainer<fl::gpt2<fl::gpt2_size::small>>;
//   struct own : fl::gpt<fl::gpt_config{.layers = 6, .width = 384, .heads = 6}> {};
#pragma once

#include "../ops/add.hpp"
#include "../ops/attention.hpp"
#include "../ops/dropout.hpp"
#include "../ops/embedding.hpp"
#include "../ops/gelu.hpp"
#include "../ops/layer_norm.hpp"
#include "../ops/loss.hpp"
#include "names_gpt2.hpp"

namespace fusionllm::inline v0 {

/// What one GPT differs in from another; the default is GPT-2 small.
struct gpt_config {
  int layers = 12;
  i64 width = 768;  ///< features of the residual stream
  i64 heads = 12;   ///< divides the width
  i64 vocabulary = 50257;
  i64 positions = 1024;  ///< the longest `time`
  double dropout = 0;    ///< of embeddings and of what joins the residual stream; not of attention's probabilities
  double epsilon = 1e-5;
  i64 ignore = -100;     ///< the target that does not count
  double smoothing = 0;  ///< of labels
};

namespace detail {
/// 1 / sqrt(n) for n >= 1, by Newton's steps: the same bits for every compiler.
constexpr double reciprocal_root(double n) {
  double root = n;
  for (int i = 0; i < 64; ++i) root = (root + n / root) / 2;
  return 1 / root;
}
template <gpt_config C>
constexpr auto gpt_norm(std::string_view name) {
  return layer_norm.named(name).with_epsilon(C.epsilon);
}
template <gpt_config C>
constexpr auto gpt_dropped(auto f) {
  if constexpr (C.dropout > 0)
    return f | dropout(C.dropout);
  else
    return f;
}
/// (batch, time, width) -> the same.
template <gpt_config C>
constexpr auto gpt_block() {
  constexpr initializer first = normal(0.02), last = normal(0.02 * reciprocal_root(2.0 * C.layers));
  const auto attention = gpt_dropped<C>(causal_attention<C.heads>.initialized(first, last));
  const auto mlp = gpt_dropped<C>(linear<4 * C.width>.named("c_fc").initialized(first) | gelu
                                  | linear<C.width>.named("c_proj").initialized(last));
  return residual(gpt_norm<C>("ln_1") | scoped("attn", attention)) | residual(gpt_norm<C>("ln_2") | scoped("mlp", mlp));
}
}  // namespace detail

/// Inputs `tokens` and `targets` (batch, time); output `logits` (batch, time, vocabulary); the loss is cross-entropy.
template <gpt_config C>
struct gpt {
  static_assert(C.layers > 0 && C.width > 0 && C.heads > 0 && C.vocabulary > 0 && C.positions > 0,
                "a gpt_config needs at least one layer, feature, head, token and position");
  static_assert(C.heads <= 0 || C.width % C.heads == 0, "a gpt_config's heads divide its width");
  static constexpr gpt_config config = C;
  static constexpr weight_names file_names = gpt2_names;

  static constexpr auto define(auto& g) {
    auto tokens = input<i32, batch, time>(g, "tokens");
    auto targets = input<i32, batch, time>(g, "targets");
    auto wte = parameter<C.vocabulary, C.width>(g, "wte.weight", normal(0.02));
    auto x = embedding(tokens, wte) | detail::gpt_dropped<C>(positions<C.positions>);
    auto y = x | repeat<C.layers>(detail::gpt_block<C>()) | detail::gpt_norm<C>("ln_f");
    return cross_entropy(output("logits", project(y, wte)), targets, C.ignore, C.smoothing);
  }
};

/// The published sizes: 124, 355, 774 and 1,558 million parameters.
enum class gpt2_size { small, medium, large, xl };
constexpr gpt_config gpt2_config(gpt2_size size) {
  switch (size) {
    case gpt2_size::small:
      return {.layers = 12, .width = 768, .heads = 12};
    case gpt2_size::medium:
      return {.layers = 24, .width = 1024, .heads = 16};
    case gpt2_size::large:
      return {.layers = 36, .width = 1280, .heads = 20};
    case gpt2_size::xl:
      return {.layers = 48, .width = 1600, .heads = 25};
  }
  return {};
}

template <gpt2_size Size>
struct gpt2 : gpt<gpt2_config(Size)> {};

}  // namespace fusionllm::inline v0
