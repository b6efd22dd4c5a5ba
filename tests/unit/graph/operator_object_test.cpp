// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/operator_object.hpp>

#include <fusionllm/graph/graph.hpp>
#include <fusionllm/ops/ops.hpp>

#include <string>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

struct named {
  static constexpr auto define(auto& g) {
    constexpr auto plain = fl::linear<4>.without_bias();
    return fl::input<fl::real, fl::batch, 4>(g, "x") | plain | plain.named("fc").initialized(fl::zeros) | plain | fl::linear<4> |
           fl::layer_norm | fl::layer_norm.named("norm").with_epsilon(0.25) | fl::rms_norm.with_epsilon(0.5).named("rms");
  }
};
struct kept {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    return fl::output("y", fl::output("p", x | fl::scale(3)) | fl::silu);
  }
};

}  // namespace

TEST_CASE("a changed object is a copy: its name, and what else it may be told") {
  const fl::graph_view g = fl::graph_of<named>();
  std::string names;
  for (const auto& p : g.params) names += std::string(p.path.view()) + ' ';
  CHECK(names == "linear.weight fc.weight linear_1.weight linear_2.weight linear_2.bias ln.weight ln.bias norm.weight norm.bias rms.weight ");
  std::vector<double> epsilons;
  for (const auto& n : g.nodes)
    if (n.op->name == "layer_norm" || n.op->name == "rms_norm") epsilons.push_back(n.attr.x);
  CHECK(epsilons == std::vector<double>{1e-5, 0.25, 0.5});
}

TEST_CASE("an operator that keeps a shape has its attributes and no parameters") {
  const fl::graph_view g = fl::graph_of<kept>();
  REQUIRE(g.size() == 3);
  CHECK(g.params.empty());
  CHECK(g.nodes[1].op->name == "scale");
  CHECK(g.nodes[1].attr.x == 3);
  CHECK(g.nodes[2].op->name == "silu");
  CHECK(g.nodes[2].out == g.nodes[0].out);
}
