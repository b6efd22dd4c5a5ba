// SPDX-License-Identifier: Apache-2.0
// What the operators of text models make of shapes, and what their nodes and parameters say.
#include <fusionllm/ops/concatenate.hpp>

#include <fusionllm/ops/ops.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {
template <class F>
struct of {
  static constexpr auto define(auto& g) { return F{}(fl::input<fl::real, fl::batch, fl::time, 12>(g, "x")); }
};
template <class F>
const fl::node& result() {
  const fl::graph_view g = fl::graph_of<of<F>>();
  return g.nodes[std::size_t(g.loss)];
}
template <fl::i64... D>
constexpr fl::extents dims = fl::extents_of<fl::shape<D...>>();

struct means {
  constexpr auto operator()(auto x) const { return fl::mean(x); }
};
struct mean_of_means {
  constexpr auto operator()(auto x) const { return x | fl::mean() | fl::mean_of_all(); }
};
struct mean_of_one {
  constexpr auto operator()(auto x) const { return fl::mean_of_all(x) | fl::mean(); }
};
struct heads {
  constexpr auto operator()(auto x) const { return x | fl::reshape<fl::batch, fl::time, 3, 4> | fl::transpose<1, 2>; }
};
struct turned {
  constexpr auto operator()(auto x) const { return x | fl::transpose<-1, 0>; }
};
struct part {
  constexpr auto operator()(auto x) const { return x | fl::slice<-1, 3, 8>(); }
};
struct five {
  constexpr auto operator()(auto x) const {
    return fl::concatenate(x | fl::slice<2, 0, 1>(), x | fl::slice<2, 0, 2>(), x, x | fl::slice<2, 0, 3>(),
                           x | fl::slice<2, 0, 4>());
  }
};
struct shared_keys {
  constexpr auto operator()(auto x) const { return x | fl::causal_attention<6, 2>; }
};
struct own_keys {
  constexpr auto operator()(auto x) const { return x | fl::causal_attention<6>; }
};
}  // namespace

TEST_CASE("means drop the last extent, or all") {
  CHECK(result<means>().out == dims<fl::batch, fl::time>);
  CHECK(result<mean_of_means>().out == dims<1>);
  CHECK(result<mean_of_one>().out == dims<1>);
}
TEST_CASE("reshape, transpose, slice and concatenate move extents") {
  CHECK(result<heads>().out == dims<fl::batch, 3, fl::time, 4>);
  CHECK(result<turned>().out == dims<12, fl::time, fl::batch>);
  CHECK(result<turned>().attr.n == std::array<fl::i64, 3>{0, 2, 0});
  CHECK(result<part>().out == dims<fl::batch, fl::time, 5>);
  CHECK(result<part>().attr.n == std::array<fl::i64, 3>{2, 3, 8});
  const fl::node& n = result<five>();
  CHECK(n.out == dims<fl::batch, fl::time, 22>);
  CHECK(n.input_count() == 5);
  const fl::i64 extents[] = {1, 2, 12, 3};
  for (int k = 0; k < 4; ++k) CHECK(fl::concatenate_op::extent(n.attr, k) == extents[k]);
}
TEST_CASE("keys and values that heads share are fewer") {
  const fl::graph_view a = fl::graph_of<of<shared_keys>>(), b = fl::graph_of<of<own_keys>>();
  CHECK(a.params[std::size_t(fl::find_parameter(a, "c_attn.weight"))].dims == dims<20, 12>);
  CHECK(b.params[std::size_t(fl::find_parameter(b, "c_attn.weight"))].dims == dims<36, 12>);
  for (const auto& [g, kv] : {std::pair{a, 2}, std::pair{b, 0}})
    for (const auto& n : g.nodes)
      if (n.op->name == "attention") CHECK(n.attr.n == std::array<fl::i64, 3>{6, kv, 0});
}
TEST_CASE("what only moves elements costs no operations") {
  for (const fl::node* n : {&result<heads>(), &result<part>(), &result<five>()}) CHECK(n->op->flops({}) == 0);
}
