// SPDX-License-Identifier: Apache-2.0
// What is known of a model at compile time.
#include <fusionllm/ops/ops.hpp>

#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

using small = gpt2<12, 768, 12>;
using medium = gpt2<24, 1024, 16>;
using extra_large = gpt2<48, 1600, 25>;

// The counts that OpenAI's checkpoints have.
static_assert(fl::parameter_count(fl::graph_of<small>()) == 124'439'808);
static_assert(fl::parameter_count(fl::graph_of<medium>()) == 354'823'168);
static_assert(fl::parameter_count(fl::graph_of<extra_large>()) == 1'557'611'200);

// Fingerprints are the same for every compiler, optimization level and device, and for all time of one wire version.
static_assert(fl::fingerprint(fl::graph_of<small>()) == 0xfb316519cad2d10a);
static_assert(fl::fingerprint(fl::graph_of<tiny_gpt>()) == 0x8c25482b1ffb9fbd);
static_assert(fl::fingerprint(fl::graph_of<small>()) != fl::fingerprint(fl::graph_of<medium>()));

// In a chain or not, a model is another graph: peers exchange fused nodes' values.
static_assert(fl::graph_of<chained<false>>().size() < fl::graph_of<chained<true>>().size());

// Logits need no targets.
constexpr bool needs(int input) {
  constexpr fl::graph_view g = fl::graph_of<small>();
  return fl::slice(g, fl::find_output(g, "logits"))[std::size_t(input)];
}
static_assert(needs(fl::find_input(fl::graph_of<small>(), "tokens")));
static_assert(!needs(fl::find_input(fl::graph_of<small>(), "targets")));

// A token of GPT-2 small costs about 6 flops a parameter that is multiplied, and attention.
constexpr fl::u64 flops = fl::training_flops(fl::graph_of<small>(), {1, 1024});
static_assert(flops > 6 * 124'000'000ull * 1024 && flops < 9 * 124'000'000ull * 1024);

// Memory: live ranges are known, too.
static_assert(fl::peak_activation_bytes(fl::graph_of<tiny_gpt>(), {2, 9}) > 0);

// Operators by concept.
static_assert(fl::graph_operator<fl::linear_op>);
static_assert(!fl::graph_operator<int>);
static_assert(fl::operator_object<decltype(fl::gelu | fl::relu)>);
static_assert(!fl::operator_object<int>);

// A sequence is flat, however it is written.
static_assert(std::is_same_v<decltype((fl::gelu | fl::relu) | fl::gelu), decltype(fl::gelu | (fl::relu | fl::gelu))>);

}  // namespace
