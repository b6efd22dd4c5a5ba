// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/models/gpt2.hpp>

#include "gradient_check.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
constexpr fl::gpt_config size{.layers = 2, .width = 8, .heads = 2, .vocabulary = 11, .positions = 9};
constexpr fl::gpt_config with_all() {
  fl::gpt_config c = size;
  c.dropout = 0.2;
  c.epsilon = 1e-3;
  c.ignore = 3;
  c.smoothing = 0.1;
  return c;
}
struct plain : fl::gpt<size> {};
struct everything : fl::gpt<with_all()> {};

int count_of(const fl::graph_view& g, std::string_view op) {
  int n = 0;
  for (const auto& node : g.nodes) {
    n += node.op->name == op;
    for (int l = 0; l < node.links; ++l) n += node.chain[std::size_t(l)].op->name == op;
  }
  return n;
}
}  // namespace

TEST_CASE("gradients of a GPT agree with central differences, with dropout and label smoothing too") {
  check_gradients<plain>({2, 5}, 11);
  check_gradients<everything>({2, 5}, 11);
}
TEST_CASE("a gpt_config's numbers arrive in the graph") {
  const fl::graph_view a = fl::graph_of<plain>(), b = fl::graph_of<everything>();
  CHECK(count_of(a, "dropout") == 0);
  CHECK(count_of(b, "dropout") == 5);  // of the embedding, and of both branches of each layer
  for (const auto& n : b.nodes)
    if (n.op->name == "layer_norm") CHECK(n.attr.x == 1e-3);
  const auto& loss = b.nodes[std::size_t(b.loss)];
  CHECK(loss.attr.n[0] == 3);
  CHECK(loss.attr.x == 0.1);
  CHECK(fl::parameter_count(a) == fl::parameter_count(b));
}
TEST_CASE("projections into the residual stream start at 0.02 / sqrt(2 layers)") {
  const fl::graph_view g = fl::graph_of<plain>();
  for (const auto& p : g.params) {
    INFO(p.path.view());
    const bool norm_or_bias = p.dims.rank == 1, projection = p.path.view().find("c_proj") != std::string_view::npos;
    if (!norm_or_bias) CHECK(p.init.deviation == Approx(projection ? 0.01 : 0.02).epsilon(1e-15));
    CHECK(p.decays == !norm_or_bias);
  }
}
