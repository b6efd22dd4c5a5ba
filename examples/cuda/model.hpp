// SPDX-License-Identifier: Apache-2.0
// A model that g++ and nvcc both see: a small language model over bytes.
#pragma once

#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct byte_gpt {
  static constexpr auto block =
      fl::residual(fl::layer_norm | fl::causal_attention<6>)
    | fl::residual(fl::layer_norm | fl::linear<1536> | fl::gelu | fl::linear<384>);
  static constexpr auto define(auto& g) {
    auto tokens  = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte     = fl::parameter<256, 384>(g, "wte.weight");
    auto x = fl::embedding(tokens, wte) | fl::positions<1024> | fl::repeat<6>(block) | fl::layer_norm;
    return fl::cross_entropy(fl::output("logits", fl::project(x, wte)), targets);
  }
};
