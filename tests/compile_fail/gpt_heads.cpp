// SPDX-License-Identifier: Apache-2.0
// Heads divide the width.
// expect: a gpt_config's heads divide its width
#include <fusionllm/graph/graph.hpp>
#include <fusionllm/models/gpt2.hpp>

namespace fl = fusionllm;

#ifdef POSITIVE
struct model : fl::gpt<fl::gpt_config{.layers = 1, .width = 12, .heads = 3, .vocabulary = 11}> {};
#else
struct model : fl::gpt<fl::gpt_config{.layers = 1, .width = 12, .heads = 5, .vocabulary = 11}> {};
#endif

constexpr int nodes = fl::graph_of<model>().size();
