// SPDX-License-Identifier: Apache-2.0
// The model of gpt.cpp: a GPT over bytes with a tied embedding (Radford et al., 2019), 3.2 million parameters.
#pragma once

#include <fusionllm/models/names_gpt2.hpp>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct byte_gpt {
  static constexpr int layers = 4, width = 256, heads = 4, vocabulary = 256, longest = 256;
  static constexpr auto file_names = fl::gpt2_names;
  static constexpr auto small = fl::normal(0.02);
  static constexpr auto smaller = fl::normal(0.02 / 2.828);  // of what is added to the residual stream: / sqrt(2 layers)

  static constexpr auto attention = fl::scoped("attn", fl::causal_attention<heads>.initialized(smaller));
  static constexpr auto mlp = fl::scoped("mlp", fl::linear<4 * width>.named("c_fc").initialized(small) | fl::gelu |
                                                    fl::linear<width>.named("c_proj").initialized(smaller));
  static constexpr auto block = fl::residual(fl::layer_norm.named("ln_1") | attention) |
                                fl::residual(fl::layer_norm.named("ln_2") | mlp);

  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<vocabulary, width>(g, "wte.weight");
    auto x = fl::embedding(tokens, wte) | fl::positions<longest> | fl::repeat<layers>(block) | fl::layer_norm.named("ln_f");
    auto logits = fl::output("logits", fl::project(x, wte));
    return fl::cross_entropy(logits, targets);
  }
};
