// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/models/names.hpp>

#include <fusionllm/models/names_gpt2.hpp>
#include <fusionllm/models/names_resnet.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

constexpr fl::weight_rule odd_rules[] = {
    {.ours = "h.*.c_attn.weight", .theirs = "layers.*.attention.weight", .transposed = true},
    {.ours = "head.weight", .theirs = "lm_head.weight", .bare = true},
    {.ours = "b*.*.x", .theirs = "*_*"},
};
constexpr fl::weight_names odd{"model.", odd_rules, {}};

struct with_names {
  static constexpr fl::weight_names file_names = odd;
};
struct without_names {};

}  // namespace

TEST_CASE("a rule renames a family of parameters") {
  CHECK(fl::name_in_file(odd, "h.11.c_attn.weight").text == "model.layers.11.attention.weight");
  CHECK(fl::name_in_file(odd, "h.11.c_attn.weight").transposed);
  CHECK(fl::name_in_file(odd, "head.weight").text == "lm_head.weight");
  CHECK(fl::name_in_file(odd, "b12.c.d.x").text == "model.12_c.d");
  CHECK(fl::name_in_file(odd, "other").text == "model.other");
  CHECK_FALSE(fl::name_in_file(odd, "other").transposed);
}

TEST_CASE("models name their table, or have their own names in files") {
  static_assert(fl::weight_names_of<with_names>().prefix == "model.");
  static_assert(fl::weight_names_of<without_names>().rules.empty());
  CHECK(fl::name_in_file(fl::weight_names_of<without_names>(), "h.0.weight").text == "h.0.weight");
}

TEST_CASE("GPT-2 and ResNet have the names that transformers and torchvision write") {
  const auto gpt2 = [](const char* ours) { return fl::name_in_file(fl::gpt2_names, ours); };
  CHECK(gpt2("wte.weight").text == "transformer.wte.weight");
  CHECK(gpt2("h.3.attn.c_attn.weight").text == "transformer.h.3.attn.c_attn.weight");
  CHECK(gpt2("h.3.attn.c_attn.weight").transposed);
  CHECK(gpt2("h.3.mlp.c_proj.weight").transposed);
  CHECK_FALSE(gpt2("h.3.attn.c_attn.bias").transposed);
  CHECK_FALSE(gpt2("wpe.weight").transposed);
  CHECK(fl::name_in_file(fl::resnet_names, "layer1.0.downsample.0.weight").text == "layer1.0.downsample.0.weight");
  CHECK(fl::name_in_file(fl::resnet_names, "bn1.running_mean").text == "bn1.running_mean");
}
