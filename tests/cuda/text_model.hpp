// SPDX-License-Identifier: Apache-2.0
// Models that have every operator of language models, in odd sizes. They are traced by g++ for the host's teams and by
// nvcc for the GPU.
#pragma once

#include <fusionllm/ops/ops.hpp>

namespace seam {

namespace fl = fusionllm;

/// As GPT-2, with a tied table; labels that do not count, and smoothing.
struct text_model {
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<101, 45>(g, "wte.weight");
    auto x = fl::embedding(tokens, wte) | fl::positions<200> | fl::dropout(0.1);
    auto y = x | fl::residual(fl::layer_norm | fl::causal_attention<3>) | fl::layer_norm.named("ln_f");
    return fl::cross_entropy(fl::output("logits", fl::project(y, wte)), targets, -100, 0.1);
  }
};

/// As Llama: rms norm, rotary positions, grouped queries given apart; and the operators that move elements.
struct llama_like {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 36>(g, "x") | fl::rms_norm;
    auto q = x | fl::rotary<6>;
    auto k = x | fl::slice<-1, 3, 15>() | fl::rotary<6>.with_theta(500);
    auto v = x | fl::slice<-1, 24, 36>();
    auto y = fl::grouped_attention<6, 2>(q, k, v) | fl::reshape<fl::batch, fl::time, 4, 9>;
    auto z = y | fl::transpose<1, 3> | fl::transpose<1, 3> | fl::transpose<> | fl::reshape<fl::batch, fl::time, 36>;
    auto w = fl::concatenate(z, v, k | fl::softmax) | fl::mean();
    auto loss = fl::cross_entropy(fl::concatenate(z, x), fl::input<fl::i32, fl::batch, fl::time>(g, "labels"));
    return loss + fl::mean_squared_error(w, fl::input<fl::real, fl::batch, fl::time>(g, "target"));
  }
};

/// Heads of 80 and of 132, padded to 128 and to 256.
struct wide_heads {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 160>(g, "x");
    auto y = fl::input<fl::real, fl::batch, fl::time, 132>(g, "y");
    auto a = x | fl::causal_attention<2, 1>;
    auto b = y | fl::causal_attention<1>;
    return fl::mean_squared_error(fl::concatenate(a, b), fl::input<fl::real, fl::batch, fl::time, 292>(g, "target"));
  }
};

}  // namespace seam
