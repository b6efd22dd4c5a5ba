// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/render.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}
}  // namespace

TEST_CASE("the table has a line a node, with shapes by name and chains by their operators") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  const std::string text = fl::table_of(g, {3, 5});
  CHECK(count(text, "\n") == std::size_t(g.size()) + 2);
  CHECK(count(text, "gelu + dropout") == 2);
  CHECK(count(text, "batch,time,12") > 5);
  CHECK(text.find("h.1.c_attn") != std::string::npos);
  CHECK(text.find("logits") != std::string::npos);
  CHECK(text.find(std::to_string(fl::parameter_count(g)) + " parameters") != std::string::npos);
  CHECK(count(text, " \n") == 0);
}

TEST_CASE("numbers are shown with three digits and a prefix") {
  const std::string text = fl::table_of(fl::graph_of<gpt2<12, 768, 12>>(), {1, 1024});
  CHECK(text.find("38.5 M") != std::string::npos);  // wte: 50257 * 768
  CHECK(text.find("205 M") != std::string::npos);   // logits: 1024 * 50257 * 4 bytes
  CHECK(text.find("124439808 parameters") != std::string::npos);
}

TEST_CASE("dot has a node and edges for each input, and the tied parameter") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  const std::string dot = fl::dot_of(g);
  std::size_t edges = 0;
  for (const auto& n : g.nodes) edges += std::size_t(n.input_count());
  CHECK(count(dot, " -> n") == edges + 2);
  CHECK(count(dot, "shape=ellipse") == 2);
  CHECK(count(dot, "shape=diamond") == 1);
  CHECK(dot.find("wte.weight") != std::string::npos);
  CHECK(dot.substr(0, 7) == "digraph");
}

namespace {
struct quotes {
  static constexpr auto define(auto& g) {
    return fl::output("a\"b\\c", fl::input<fl::real, fl::batch>(g, "say \"x\"") | fl::relu);
  }
};
}  // namespace

TEST_CASE("dot escapes what a name may hold") {
  const std::string dot = fl::dot_of(fl::graph_of<quotes>());
  CHECK(dot.find("say \\\"x\\\"") != std::string::npos);
  CHECK(dot.find("a\\\"b\\\\c") != std::string::npos);
}
