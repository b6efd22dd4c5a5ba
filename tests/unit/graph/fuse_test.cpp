// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/fuse.hpp>

#include <string>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

std::string chain(const fl::node& n) {
  std::string s;
  for (int k = 0; k < n.links; ++k) s += (k ? " " : "") + std::string(n.chain[std::size_t(k)].op->name);
  return s;
}
template <class Model>
std::vector<std::string> chains() {
  std::vector<std::string> r;
  for (const auto& n : fl::graph_of<Model>().nodes)
    if (n.links) r.push_back(chain(n));
  return r;
}
template <class F>
struct on_x {
  static constexpr auto define(auto& g) { return F{}(fl::input<fl::real, fl::batch, 4>(g, "x")); }
};

struct of_three {
  constexpr auto operator()(auto x) const { return x | fl::gelu | fl::dropout(0.1) | fl::relu; }
};
struct with_named {
  constexpr auto operator()(auto x) const { return fl::output("seen", x | fl::gelu) | fl::dropout(0.1) | fl::relu; }
};
struct with_two_consumers {
  constexpr auto operator()(auto x) const {
    auto y = x | fl::gelu;
    return (y | fl::relu) + (y | fl::dropout(0.1));
  }
};
struct squared {  // read twice by its only consumer
  constexpr auto operator()(auto x) const {
    auto y = x | fl::gelu;
    return y * y;
  }
};
struct of_six {
  constexpr auto operator()(auto x) const {
    return x | fl::gelu | fl::relu | fl::gelu | fl::relu | fl::gelu | fl::relu;
  }
};
struct around_linear {
  constexpr auto operator()(auto x) const { return x | fl::gelu | fl::linear<4> | fl::relu; }
};
struct second_input {
  constexpr auto operator()(auto x) const { return x + (x | fl::gelu); }
};

// x - y does not commute; not built in, as a user would write it.
struct subtract_op : fl::operator_base {
  static constexpr std::string_view name = "subtract";
  static constexpr bool elementwise = true;
  template <class T>
  static constexpr T apply(fl::scalar_part part, T x, T y, T d, const fl::scalar_args&) {
    return part == fl::scalar_part::value ? x - y : part == fl::scalar_part::d_first ? d : -d;
  }
};
template <class S, class G>
constexpr auto subtract(fl::tensor<fl::real, S, G> x, fl::tensor<fl::real, S, G> y) {
  return fl::record<subtract_op, fl::real, S>(x.g, fl::from(x.id, y.id));
}
struct subtracted_second {
  constexpr auto operator()(auto x) const { return subtract(x, x | fl::gelu); }
};
struct subtracted_first {
  constexpr auto operator()(auto x) const { return subtract(x | fl::gelu, x); }
};

}  // namespace

TEST_CASE("a run of element-wise operators is one node") {
  CHECK(chains<on_x<of_three>>() == std::vector<std::string>{"gelu dropout relu"});
  CHECK(fl::graph_of<on_x<of_three>>().size() == 2);
  CHECK(chains<on_x<around_linear>>().empty());
}
TEST_CASE("a named value is not fused away") {
  CHECK(chains<on_x<with_named>>() == std::vector<std::string>{"dropout relu"});
  const fl::graph_view g = fl::graph_of<on_x<with_named>>();
  CHECK(g.nodes[std::size_t(fl::find_output(g, "seen"))].op->name == "gelu");
}
TEST_CASE("a value with several consumers is not fused away") {
  CHECK(chains<on_x<with_two_consumers>>() == std::vector<std::string>{"relu add"});
  CHECK(chains<on_x<squared>>().empty());
}
TEST_CASE("a long run is cut") {
  CHECK(chains<on_x<of_six>>() == std::vector<std::string>{"gelu relu gelu relu", "gelu relu"});
}
TEST_CASE("a chain may be the second input of an operator that commutes only") {
  CHECK(chains<on_x<second_input>>() == std::vector<std::string>{"gelu add"});
  const fl::graph_view g = fl::graph_of<on_x<second_input>>();
  CHECK(g.nodes[1].in[0] == 0);
  CHECK(g.nodes[1].in[1] == 0);
  CHECK(chains<on_x<subtracted_second>>().empty());
  CHECK(chains<on_x<subtracted_first>>() == std::vector<std::string>{"gelu subtract"});
}
TEST_CASE("backward of a chain reads only the inputs that its links need") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  for (const auto& n : g.nodes) {
    if (chain(n) == "dropout add") CHECK(n.op->saves_inputs == 0);
    if (chain(n) == "gelu dropout") CHECK(n.op->saves_inputs == 1);
  }
  const auto& all = fl::graph_of<chained<false>>();
  for (const auto& n : all.nodes)
    if (n.links == 4) CHECK(n.op->saves_inputs == 0b011);  // gelu (x) * gate, dropout, + x: the last x is not read
}
TEST_CASE("links keep their positions in the unfused trace, which key random numbers") {
  const fl::graph_view fused = fl::graph_of<chained<false>>(), apart = fl::graph_of<chained<true>>();
  std::vector<int> of_fused, of_apart;
  for (const auto& n : fused.nodes)
    for (int k = 0; k < n.links; ++k)
      if (n.chain[std::size_t(k)].op->random) of_fused.push_back(n.chain[std::size_t(k)].traced_id);
  for (const auto& n : apart.nodes)
    if (n.op->random) of_apart.push_back(n.traced_id);
  CHECK(of_fused == of_apart);
  CHECK(of_fused.size() == 2);
}
