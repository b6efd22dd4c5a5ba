// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/autodiff.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
struct frozen_branch {  // y depends on no parameter
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    auto y = fl::output("y", x | fl::relu);
    return fl::mean_squared_error(fl::output("z", x | fl::linear<4>), y);
  }
};
struct without_loss {
  static constexpr auto define(auto& g) { return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4>; }
};
struct shared {
  static constexpr auto define(auto& g) {
    auto x = fl::output("x", fl::input<fl::real, fl::batch, 4>(g, "in") | fl::linear<4>);
    auto a = x | fl::linear<4>;
    auto b = x | fl::linear<4>;
    return fl::mean_squared_error(a * x, b);
  }
};
int node_of(const fl::graph_view& g, const char* name) { return fl::find_output(g, name); }
}  // namespace

TEST_CASE("only what leads from a parameter to the loss gets a cotangent") {
  const fl::graph_view g = fl::graph_of<frozen_branch>();
  const fl::flags wanted = fl::nodes_with_cotangent(g);
  CHECK(wanted[std::size_t(node_of(g, "z"))]);
  CHECK_FALSE(wanted[std::size_t(node_of(g, "y"))]);
  CHECK_FALSE(wanted[0]);
  CHECK(wanted[std::size_t(g.loss)]);
}
TEST_CASE("a model without a loss has no cotangents") {
  for (fl::u8 w : fl::nodes_with_cotangent(fl::graph_of<without_loss>())) CHECK_FALSE(w);
}
TEST_CASE("the uses of a value are listed in ascending order") {
  const fl::graph_view g = fl::graph_of<shared>();
  const auto uses = fl::cotangent_uses(g);
  const auto& of_x = uses[std::size_t(node_of(g, "x"))];
  REQUIRE(of_x.size() == 3);
  for (std::size_t k = 1; k < of_x.size(); ++k) CHECK(of_x[k - 1].node < of_x[k].node);
  for (const auto& u : of_x) CHECK(g.nodes[std::size_t(u.node)].in[std::size_t(u.slot)] == node_of(g, "x"));
  for (const auto& u : uses[0]) CHECK(u == fl::use{-1, -1});  // an input has none
}
TEST_CASE("targets get no cotangent: the loss is differentiable in the logits only") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  CHECK(fl::cotangent_uses(g)[std::size_t(fl::find_input(g, "targets"))].empty());
}
