// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/arrange.hpp>

#include <string>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

// One model, its parts evaluated in different orders, as compilers may evaluate arguments.
template <int Order>
struct any_order {
  static constexpr auto define(auto& g) {
    auto first = [&] { return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<3> | fl::gelu; };
    auto second = [&] { return fl::input<fl::real, fl::batch, 4>(g, "y") | fl::linear<3> | fl::dropout(0.1); };
    if constexpr (Order == 0) {
      auto a = fl::output("a", first());
      auto b = fl::output("b", second());
      return fl::mean_squared_error(a, b);
    } else if constexpr (Order == 1) {
      auto b = fl::output("b", second());
      auto a = fl::output("a", first());
      return fl::mean_squared_error(a, b);
    } else {
      return fl::mean_squared_error(fl::output("a", first()), fl::output("b", second()));
    }
  }
};
struct parameters_declared_first {
  static constexpr auto define(auto& g) {
    auto late = fl::parameter<4, 4>(g, "late");
    auto early = fl::parameter<4, 4>(g, "early");
    return fl::project(fl::project(fl::input<fl::real, fl::batch, 4>(g, "x"), early), late);
  }
};
struct inputs_in_between {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4>;
    auto unused = fl::input<fl::i32, fl::batch>(g, "unused");
    (void)unused;
    return x + fl::input<fl::real, fl::batch, 4>(g, "y");
  }
};
template <int Depth>
struct deep {
  static constexpr auto define(auto& g) {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::repeat<Depth>(fl::linear<4>);
  }
};

void check_equal(const fl::graph_view& a, const fl::graph_view& b) {
  CHECK(fl::fingerprint(a) == fl::fingerprint(b));
  REQUIRE(a.params.size() == b.params.size());
  for (std::size_t p = 0; p < a.params.size(); ++p) CHECK(a.params[p].path.view() == b.params[p].path.view());
  for (std::size_t i = 0; i < a.nodes.size(); ++i) CHECK(a.nodes[i].traced_id == b.nodes[i].traced_id);
}

}  // namespace

TEST_CASE("numbers and names do not depend on the order in which define is evaluated") {
  const fl::graph_view g = fl::graph_of<any_order<0>>();
  check_equal(g, fl::graph_of<any_order<1>>());
  check_equal(g, fl::graph_of<any_order<2>>());
  CHECK(g.nodes[std::size_t(fl::find_output(g, "a"))].op->name == "gelu");
  const auto& of_a = g.nodes[std::size_t(g.nodes[std::size_t(fl::find_output(g, "a"))].in[0])];
  CHECK(g.params[std::size_t(of_a.params[0])].path.view() == "linear.weight");
}

TEST_CASE("parameters are numbered by their first use") {
  const fl::graph_view g = fl::graph_of<parameters_declared_first>();
  CHECK(g.params[0].path.view() == "early");
  CHECK(g.params[1].path.view() == "late");
}

TEST_CASE("inputs come first, used ones before unused ones") {
  const fl::graph_view g = fl::graph_of<inputs_in_between>();
  CHECK(g.nodes[0].scope.view() == "x");
  CHECK(g.nodes[1].scope.view() == "y");
  CHECK(g.nodes[2].scope.view() == "unused");
  CHECK(g.nodes[3].op->name == "linear");
}

TEST_CASE("every node comes after what it reads") {
  for (const fl::graph_view& g :
       {fl::graph_of<tiny_gpt>(), fl::graph_of<chained<true>>(), fl::graph_of<any_order<1>>()})
    for (int i = 0; i < g.size(); ++i)
      for (int in : g.nodes[std::size_t(i)].in) CHECK(in < i);
}

TEST_CASE("a deep model needs no deep recursion of the compiler") {
  CHECK(fl::graph_of<deep<600>>().size() == 601);  // compilers stop at 512 nested constexpr calls
}
