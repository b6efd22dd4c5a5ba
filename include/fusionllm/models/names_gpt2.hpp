// SPDX-License-Identifier: Apache-2.0
// Names of GPT-2's weights as transformers has them: GPT2LMHeadModel writes "transformer.h.0.attn.c_attn.weight", the
// original files lack the prefix. Its Conv1D keeps matrices as (in, out). The head is tied to the embedding, so a file
// may have either, or both and equal. Rows that the model has not, of unused tokens or later positions, are dropped: the
// logits of the others stay the same.
#pragma once

#include "names.hpp"

namespace fusionllm::inline v0 {

inline constexpr weight_rule gpt2_weight_rules[] = {
    {.ours = "wte.weight", .padded = true},
    {.ours = "wpe.weight", .padded = true},
    {.ours = "wte.weight", .theirs = "lm_head.weight", .bare = true, .padded = true},
    {.ours = "h.*.attn.c_attn.weight", .transposed = true},
    {.ours = "h.*.attn.c_proj.weight", .transposed = true},
    {.ours = "h.*.mlp.c_fc.weight", .transposed = true},
    {.ours = "h.*.mlp.c_proj.weight", .transposed = true},
};
/// Causal masks, which some files hold as buffers.
inline constexpr std::string_view gpt2_ignored_names[] = {"h.*.attn.bias", "h.*.attn.masked_bias"};

/// For a model whose parameters are wte, wpe, h.N.{ln_1,attn.{c_attn,c_proj},ln_2,mlp.{c_fc,c_proj}} and ln_f.
inline constexpr weight_names gpt2_names{"transformer.", gpt2_weight_rules, gpt2_ignored_names};

}  // namespace fusionllm::inline v0
