// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/models/llama.hpp>

#include <fusionllm/graph/graph.hpp>

#include "device_agreement.hpp"
#include "gradient_check.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
constexpr fl::llama_config size{.layers = 2, .width = 16, .heads = 4, .kv_heads = 2, .hidden = 24, .vocabulary = 11};
constexpr fl::llama_config tied() {
  fl::llama_config c = size;
  c.tied = true;
  c.theta = 100;
  c.epsilon = 1e-3;
  c.ignore = 3;
  return c;
}
struct plain : fl::llama<size> {};
struct with_tied_head : fl::llama<tied()> {};
}  // namespace

TEST_CASE("gradients of a Llama agree with central differences") {
  check_gradients<plain>({2, 5}, 11);
  check_gradients<with_tied_head>({2, 5}, 11);
}
TEST_CASE("a Llama on the CPU agrees with plain loops in double") {
  check_agreement<plain>({3, 5}, 4e-6, 11);
  check_agreement<with_tied_head>({2, 70}, 4e-6, 11);
}
TEST_CASE("a tied head saves a table, and a config's numbers arrive in the graph") {
  const fl::graph_view a = fl::graph_of<plain>(), b = fl::graph_of<with_tied_head>();
  CHECK(fl::parameter_count(a) == fl::parameter_count(b) + 11 * 16);
  CHECK(fl::find_parameter(a, "lm_head.weight") >= 0);
  CHECK(fl::find_parameter(b, "lm_head.weight") < 0);
  for (const auto& n : b.nodes) {
    if (n.op->name == "rms_norm") CHECK(n.attr.x == 1e-3);
    if (n.op->name == "rotary") CHECK(n.attr.x == 100);
    if (n.op->name == "attention") CHECK((n.attr.n[0] == 4 && n.attr.n[1] == 2));
  }
}
