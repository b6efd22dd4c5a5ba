// SPDX-License-Identifier: Apache-2.0
// What operators make of shapes, and the parameters that they bring.
#include <fusionllm/ops/ops.hpp>

#include <string>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {
template <class F>
struct of {
  static constexpr auto define(auto& g) { return F{}(g); }
};
constexpr auto sequence_of(auto& g) { return fl::input<fl::real, fl::batch, fl::time, 12>(g, "x"); }

struct linear_of {
  constexpr auto operator()(auto& g) const { return sequence_of(g) | fl::linear<5>.named("fc"); }
};
struct attention_of {
  constexpr auto operator()(auto& g) const { return sequence_of(g) | fl::causal_attention<4>; }
};
struct embedding_of {
  constexpr auto operator()(auto& g) const {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    return fl::embedding(tokens, fl::parameter<11, 12>(g, "wte")) | fl::positions<64>.named("where");
  }
};
struct norm_of {
  constexpr auto operator()(auto& g) const { return sequence_of(g) | fl::layer_norm.named("n"); }
};
struct fixed_batch {
  constexpr auto operator()(auto& g) const { return fl::input<fl::real, 3, 12>(g, "x") | fl::linear<5>; }
};

template <class F>
fl::extents result() {
  const fl::graph_view g = fl::graph_of<of<F>>();
  return g.nodes[std::size_t(g.loss)].out;
}
template <class F>
std::vector<std::string> parameters() {
  std::vector<std::string> r;
  for (const auto& p : fl::graph_of<of<F>>().params) {
    std::string s(p.path.view());
    for (int k = 0; k < p.dims.rank; ++k) s += " " + std::to_string(p.dims.d[std::size_t(k)]);
    r.push_back(s);
  }
  return r;
}
using list = std::vector<std::string>;
}  // namespace

TEST_CASE("linear replaces the last extent") {
  CHECK(result<linear_of>() == fl::extents_of<fl::shape<fl::batch, fl::time, 5>>());
  CHECK(parameters<linear_of>() == list{"fc.weight 5 12", "fc.bias 5"});
  CHECK(result<fixed_batch>() == fl::extents_of<fl::shape<3, 5>>());
}
TEST_CASE("attention keeps the shape and brings two linears") {
  CHECK(result<attention_of>() == fl::extents_of<fl::shape<fl::batch, fl::time, 12>>());
  CHECK(parameters<attention_of>()
        == list{"c_attn.weight 36 12", "c_attn.bias 36", "c_proj.weight 12 12", "c_proj.bias 12"});
}
TEST_CASE("embedding adds an extent, positions bring a table and a limit of time") {
  CHECK(result<embedding_of>() == fl::extents_of<fl::shape<fl::batch, fl::time, 12>>());
  CHECK(parameters<embedding_of>() == list{"wte 11 12", "where.weight 64 12"});
  const fl::graph_view g = fl::graph_of<of<embedding_of>>();
  const auto& n = g.nodes[std::size_t(g.loss)];
  CHECK(n.op->time_limit(n.attr) == 64);
}
TEST_CASE("layer_norm keeps the shape and brings scale and shift") {
  CHECK(result<norm_of>() == fl::extents_of<fl::shape<fl::batch, fl::time, 12>>());
  CHECK(parameters<norm_of>() == list{"n.weight 12", "n.bias 12"});
}
