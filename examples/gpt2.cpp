// SPDX-License-Identifier: Apache-2.0
// GPT-2 from scratch or from weights that others trained, in any of its published sizes and in two small ones:
//
//   gpt2 tokenize --data text.txt --tokenizer gpt2/ --output text.tokens
//   gpt2 train    --model small --data text.tokens --tokenizer gpt2/ --run scratch
//   gpt2 import   --model small --weights model.safetensors --tokenizer gpt2/ --run tuned
//   gpt2 train    --model small --data text.tokens --run tuned --resume
//   gpt2 generate --run tuned --prompt "To be" --top_p 0.9
// ctest: graph --model tiny
// ctest: plan --model medium --topology @SOURCE@/examples/topologies/demo.json --time 256
#include <fusionllm/linked.hpp>
#include <fusionllm/models/gpt2.hpp>

namespace fl = fusionllm;

struct tiny : fl::gpt<fl::gpt_config{.layers = 2, .width = 64, .heads = 2, .positions = 256}> {};
struct six : fl::gpt<fl::gpt_config{.layers = 6, .width = 384, .heads = 6}> {};

template <class Model>
constexpr auto binding = &fl::linked_trainer<Model>::binding;

int main(int argc, char** argv) {
  using enum fl::gpt2_size;
  return fl::run_linked({{"small", binding<fl::gpt2<small>>},
                         {"medium", binding<fl::gpt2<medium>>},
                         {"large", binding<fl::gpt2<large>>},
                         {"xl", binding<fl::gpt2<xl>>},
                         {"six", binding<six>},
                         {"tiny", binding<tiny>}},
                        argc, argv, {.defaults = {.batch = 8, .time = 256, .threads = 2}});
}
