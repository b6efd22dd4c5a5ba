// SPDX-License-Identifier: Apache-2.0
// What is known at compile time of the library's own models.
#include <fusionllm/graph/fingerprint.hpp>
#include <fusionllm/graph/graph.hpp>
#include <fusionllm/models/gpt2.hpp>
#include <fusionllm/models/llama.hpp>

#include "models.hpp"

namespace fl = fusionllm;

namespace {

template <class Model>
constexpr fl::u64 count = fl::parameter_count(fl::graph_of<Model>());
template <class Model>
constexpr bool has(std::string_view parameter, fl::extents dims) {
  const fl::graph_view g = fl::graph_of<Model>();
  const int p = fl::find_parameter(g, parameter);
  return p >= 0 && g.params[std::size_t(p)].dims == dims;
}

// The counts of the published checkpoints.
using small = fl::gpt2<fl::gpt2_size::small>;
using xl = fl::gpt2<fl::gpt2_size::xl>;
static_assert(count<small> == 124'439'808);
static_assert(count<fl::gpt2<fl::gpt2_size::medium>> == 354'823'168);
static_assert(count<fl::gpt2<fl::gpt2_size::large>> == 774'030'080);
static_assert(count<xl> == 1'557'611'200);

static_assert(fl::graph_of<small>().params.size() == 148);
static_assert(has<small>("wte.weight", {2, {50257, 768}}) && has<small>("wpe.weight", {2, {1024, 768}}));
static_assert(has<small>("h.0.ln_1.weight", {1, {768}}) && has<small>("h.0.ln_1.bias", {1, {768}}));
static_assert(has<small>("h.11.attn.c_attn.weight", {2, {2304, 768}}) && has<small>("h.0.attn.c_attn.bias", {1, {2304}}));
static_assert(has<small>("h.0.attn.c_proj.weight", {2, {768, 768}}) && has<small>("h.0.mlp.c_fc.weight", {2, {3072, 768}}));
static_assert(has<small>("h.11.mlp.c_proj.weight", {2, {768, 3072}}) && has<small>("h.11.mlp.c_proj.bias", {1, {768}}));
static_assert(has<small>("h.3.ln_2.bias", {1, {768}}) && has<small>("ln_f.weight", {1, {768}}));
static_assert(fl::fingerprint(fl::graph_of<small>()) == fl::fingerprint(fl::graph_of<fusionllm_test::gpt2<12, 768, 12>>()));

// Residual projections start at 0.02 / sqrt(2 layers), all other matrices at 0.02; biases and norms as always.
constexpr double deviation_of(std::string_view parameter) {
  constexpr fl::graph_view g = fl::graph_of<small>();
  return g.params[std::size_t(fl::find_parameter(g, parameter))].init.deviation;
}
static_assert(deviation_of("wte.weight") == 0.02 && deviation_of("wpe.weight") == 0.02);
static_assert(deviation_of("h.0.attn.c_attn.weight") == 0.02 && deviation_of("h.5.mlp.c_fc.weight") == 0.02);
constexpr double residual_square = deviation_of("h.0.attn.c_proj.weight") * deviation_of("h.0.mlp.c_proj.weight");
static_assert(residual_square > 0.0004 / 24 * 0.999999 && residual_square < 0.0004 / 24 * 1.000001);

// Any other size; dropout makes nodes only where it is asked for, and fuses with the residual's sum.
struct six_layers : fl::gpt<fl::gpt_config{.layers = 6, .width = 384, .heads = 6}> {};
struct with_dropout : fl::gpt<fl::gpt_config{.layers = 6, .width = 384, .heads = 6, .dropout = 0.1}> {};
static_assert(count<six_layers> == 50257 * 384 + 1024 * 384 + 6 * (12 * 384 * 384 + 13 * 384) + 2 * 384);
static_assert(count<with_dropout> == count<six_layers>);
static_assert(fl::graph_of<with_dropout>().size() == fl::graph_of<six_layers>().size() + 1);
static_assert(fl::fingerprint(fl::graph_of<with_dropout>()) != fl::fingerprint(fl::graph_of<six_layers>()));

// Llama 2 7B and TinyLlama 1.1B as published.
struct llama_7b : fl::llama<fl::llama_config{.layers = 32, .width = 4096, .heads = 32, .kv_heads = 32, .hidden = 11008}> {};
struct tiny_llama : fl::llama<fl::llama_config{.layers = 22, .width = 2048, .heads = 32, .kv_heads = 4, .hidden = 5632}> {};
static_assert(count<llama_7b> == 6'738'415'616);
static_assert(count<tiny_llama> == 1'100'048'384);
static_assert(has<tiny_llama>("model.embed_tokens.weight", {2, {32000, 2048}}) && has<tiny_llama>("lm_head.weight", {2, {32000, 2048}}));
static_assert(has<tiny_llama>("model.layers.21.self_attn.q_proj.weight", {2, {2048, 2048}}));
static_assert(has<tiny_llama>("model.layers.0.self_attn.k_proj.weight", {2, {256, 2048}}));
static_assert(has<tiny_llama>("model.layers.0.mlp.down_proj.weight", {2, {2048, 5632}}));
static_assert(has<tiny_llama>("model.layers.0.post_attention_layernorm.weight", {1, {2048}}) && has<tiny_llama>("model.norm.weight", {1, {2048}}));

}  // namespace
