// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/graph.hpp>

#include <set>
#include <string>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

struct repeated_names {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    auto y = x | fl::linear<4> | fl::linear<4> | fl::linear<4>.named("linear_1")
             | fl::scoped("a", fl::linear<4> | fl::linear<4>) | fl::scoped("a", fl::linear<4>)
             | fl::repeat<2>(fl::linear<4> | fl::linear<4>) | fl::repeat<2>(fl::linear<4>);
    return y;
  }
};
struct several_inputs {
  static constexpr auto define(auto& g) {
    auto a = fl::input<fl::real, fl::batch, 4>(g, "a");
    auto b = fl::input<fl::real, fl::batch, 4>(g, "b");
    auto table = fl::parameter<4, 4>(g, "table");
    auto x = fl::project(a, table) + fl::project(b, table);
    return fl::mean_squared_error(fl::output("x", fl::project(x, table)), b);
  }
};
struct no_parameters {
  static constexpr auto define(auto& g) { return fl::input<fl::real, fl::batch, 4>(g, "a") | fl::relu | fl::gelu; }
};

std::vector<std::string> names(const fl::graph_view& g) {
  std::vector<std::string> n;
  for (const auto& p : g.params) n.emplace_back(p.path.view());
  return n;
}

}  // namespace

TEST_CASE("a repeated sibling's name gets a suffix, other scopes do not") {
  CHECK(names(fl::graph_of<repeated_names>())
        == std::vector<std::string>{
            "linear.weight",       "linear.bias",       "linear_1.weight",     "linear_1.bias",
            "linear_1_1.weight",   "linear_1_1.bias",   "a.linear.weight",     "a.linear.bias",
            "a.linear_1.weight",   "a.linear_1.bias",   "a_1.linear.weight",   "a_1.linear.bias",
            "h.0.linear.weight",   "h.0.linear.bias",   "h.0.linear_1.weight", "h.0.linear_1.bias",
            "h.1.linear.weight",   "h.1.linear.bias",   "h.1.linear_1.weight", "h.1.linear_1.bias",
            "h_1.0.linear.weight", "h_1.0.linear.bias", "h_1.1.linear.weight", "h_1.1.linear.bias"});
}

TEST_CASE("GPT-2's parameters have their global names and shapes") {
  const fl::graph_view g = fl::graph_of<gpt2<12, 768, 12>>();
  CHECK(g.params.size() == 148);
  for (const char* n : {"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.weight", "h.11.mlp.c_proj.bias",
                        "h.10.ln_2.bias", "ln_f.weight"})
    CHECK(fl::find_parameter(g, n) >= 0);
  const auto& w = g.params[std::size_t(fl::find_parameter(g, "h.3.attn.c_attn.weight"))];
  CHECK(w.dims.d[0] == 3 * 768);
  CHECK(w.dims.d[1] == 768);
  CHECK(w.decays);
  CHECK_FALSE(g.params[std::size_t(fl::find_parameter(g, "h.3.ln_1.weight"))].decays);
  CHECK(fl::find_parameter(g, "h.12.ln_1.weight") == -1);
  const auto all = names(g);
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
}

TEST_CASE("inputs and outputs are found by name") {
  const fl::graph_view g = fl::graph_of<several_inputs>();
  CHECK(fl::find_input(g, "a") == 0);
  CHECK(fl::find_input(g, "b") == 1);
  CHECK(fl::find_input(g, "x") == -1);
  CHECK(g.nodes[std::size_t(fl::find_output(g, "x"))].op->name == "linear");
  CHECK(fl::find_output(g, "a") == -1);
}

TEST_CASE("a parameter that is used more than once is one parameter") {
  const fl::graph_view g = fl::graph_of<several_inputs>();
  REQUIRE(g.params.size() == 1);
  CHECK(fl::parameter_count(g) == 16);
  const auto uses = fl::parameter_uses(g);
  REQUIRE(uses[0].size() == 3);
  CHECK(uses[0][0].node < uses[0][1].node);
  CHECK(uses[0][1].node < uses[0][2].node);
}

TEST_CASE("a model without parameters or loss is a graph too") {
  const fl::graph_view g = fl::graph_of<no_parameters>();
  CHECK(g.params.empty());
  CHECK(g.size() == 2);
  CHECK(g.loss == 1);
}
