// SPDX-License-Identifier: Apache-2.0
// Models that several tests share.
#pragma once

#include <fusionllm/ops/ops.hpp>

namespace fusionllm_test {

namespace fl = fusionllm;

/// GPT-2 (Radford et al., 2019) with its weights' global names. Small: Layers 12, Width 768, Heads 12.
template <int Layers, int Width, int Heads, int Vocabulary = 50257, int Time = 1024>
struct gpt2 {
  static constexpr auto block =
      fl::residual(fl::layer_norm.named("ln_1") | fl::scoped("attn", fl::causal_attention<Heads>))
      | fl::residual(
          fl::layer_norm.named("ln_2")
          | fl::scoped("mlp", fl::linear<4 * Width>.named("c_fc") | fl::gelu | fl::linear<Width>.named("c_proj")));
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<Vocabulary, Width>(g, "wte.weight");
    auto x =
        fl::embedding(tokens, wte) | fl::positions<Time> | fl::repeat<Layers>(block) | fl::layer_norm.named("ln_f");
    auto logits = fl::output("logits", fl::project(x, wte));
    return fl::cross_entropy(logits, targets);
  }
};

/// Small, with dropout, so that it has chains; tied weights and an ignored target (3).
struct tiny_gpt {
  static constexpr auto block =
      fl::residual(fl::layer_norm | fl::causal_attention<2> | fl::dropout(0.1))
      | fl::residual(fl::layer_norm | fl::linear<24> | fl::gelu | fl::dropout(0.2) | fl::linear<12> | fl::dropout(0.1));
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<11, 12>(g, "wte.weight");
    auto x = fl::embedding(tokens, wte) | fl::positions<9> | fl::repeat<2>(block) | fl::layer_norm;
    auto logits = fl::output("logits", fl::project(x, wte));
    return fl::cross_entropy(logits, targets, 3);
  }
};

/// The same chain of element-wise operators, fused, or (Seen) kept apart by naming every value.
template <bool Seen>
struct chained {
  static constexpr auto see(std::string_view n, auto x) {
    if constexpr (Seen)
      return fl::output(n, x);
    else
      return x;
  }
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 7>(g, "x") | fl::positions<9>;
    auto target = fl::input<fl::real, fl::batch, fl::time, 7>(g, "target");
    auto gate = x | fl::linear<7>;
    auto a = see("a", x | fl::gelu);
    auto b = see("b", gate * a);  // the chain is the second input: `multiply` commutes
    auto c = see("c", b | fl::dropout(0.3));
    auto d = see("d", c + x);
    auto e = see("e", d | fl::relu);
    return fl::mean_squared_error(see("f", e | fl::dropout(0.1)), target);
  }
};

}  // namespace fusionllm_test
