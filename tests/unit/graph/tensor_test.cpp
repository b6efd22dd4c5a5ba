// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/tensor.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;

namespace {
struct seen_twice {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    return fl::output("first", fl::output("second", x | fl::linear<4>)) | fl::relu;
  }
};
struct input_as_output {
  static constexpr auto define(auto& g) {
    return fl::output("same", fl::input<fl::real, fl::batch, 4>(g, "x")) | fl::relu;
  }
};
}  // namespace

TEST_CASE("a value may have two names, and an input may be an output") {
  const fl::graph_view g = fl::graph_of<seen_twice>();
  REQUIRE(g.outputs.size() == 2);
  CHECK(fl::find_output(g, "first") == fl::find_output(g, "second"));
  CHECK(g.outputs[0].path.view() == "first");  // by name
  CHECK(fl::find_output(fl::graph_of<input_as_output>(), "same") == 0);
}
TEST_CASE("parameters say how they start and whether they decay") {
  const fl::graph_view g = fl::graph_of<fusionllm_test::tiny_gpt>();
  for (const auto& p : g.params) {
    const std::string_view n = p.path.view();
    const bool bias = n.ends_with("bias"), norm = n.find("ln") != n.npos;
    CHECK(p.decays == (!bias && !norm));
    INFO(std::string(n) << " " << p.init.deviation);
    if (bias)
      CHECK(p.init == fl::zeros);
    else if (norm)
      CHECK(p.init == fl::ones);
    else if (n == "wte.weight" || n == "wpe.weight")
      CHECK(p.init == fl::normal(0.02));
    else if (n.find("c_proj") == n.npos)
      CHECK(p.init == fl::fan_in);
  }
}
