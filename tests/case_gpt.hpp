// SPDX-License-Identifier: Apache-2.0
// The model that tests of whole runs train, for the host's compilers and for nvcc.
#pragma once

#include <fusionllm/ops/ops.hpp>

namespace fusionllm_test {

namespace fl = fusionllm;

/// The tied GPT of case C01: 2 layers, width 16, vocabulary 61, and dropout of so many percent.
template <int Dropout>
struct tied_gpt {
  static constexpr int vocabulary = 61, time = 12;
  static constexpr auto block =
      fl::residual(fl::layer_norm.named("ln_1") | fl::scoped("attn", fl::causal_attention<2> | fl::dropout(Dropout / 100.0))) |
      fl::residual(fl::layer_norm.named("ln_2") |
                   fl::scoped("mlp", fl::linear<64>.named("c_fc") | fl::gelu | fl::linear<16>.named("c_proj")));
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<vocabulary, 16>(g, "wte.weight");
    auto x = fl::embedding(tokens, wte) | fl::positions<time> | fl::repeat<2>(block) | fl::layer_norm.named("ln_f");
    auto logits = fl::output("logits", fl::project(x, wte));
    return fl::cross_entropy(logits, targets);
  }
};

using case_gpt = tied_gpt<10>;

}  // namespace fusionllm_test
