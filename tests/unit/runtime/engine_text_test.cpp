// SPDX-License-Identifier: Apache-2.0
// Case C01 on a model of everything that text models have beside GPT's: it may be cut at any edge.
#include <fusionllm/device/cpu.hpp>
#include <fusionllm/models/llama.hpp>

#include "same_bits.hpp"

using namespace fusionllm_test;

namespace {

struct text_model {
  static constexpr int vocabulary = 61;
  static constexpr auto block =
      fl::residual(fl::rms_norm | fl::scoped("attn", fl::rotary_attention<4, 2>)) | fl::residual(fl::rms_norm | fl::swiglu<24>);
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto table = fl::parameter<vocabulary, 16>(g, "table");
    auto x = fl::embedding(tokens, table) | fl::repeat<2>(block);
    auto heads = x | fl::reshape<fl::batch, fl::time, 2, 8> | fl::transpose<1, 2> | fl::softmax;
    auto mixed = heads | fl::transpose<1, 2> | fl::reshape<fl::batch, fl::time, 16>;
    auto part = (x - mixed) * 0.5 | fl::slice<-1, 8, 16>();
    auto ratio = (x | fl::slice<-1, 0, 8>()) / (mixed | fl::slice<-1, 4, 12>() | fl::softmax);
    auto mean = fl::mean(x) | fl::reshape<fl::batch, fl::time, 1>;
    auto y = fl::concatenate(part, ratio * 0.1, mean, x | fl::slice<-1, 0, 15>());  // (batch, time, 32)
    return fl::cross_entropy(fl::project(y | fl::linear<16>, table), targets, -100, 0.1);
  }
};

}  // namespace

TEST_CASE("reference: the same bits for every plan of a model with skips, shared keys and rearranged tensors") {
  same_bits<fl::reference<float>, text_model>{6, 8};
}
TEST_CASE("cpu: the same bits for every plan of a model with skips, shared keys and rearranged tensors") {
  same_bits<fl::cpu, text_model>{6, 8};
}
