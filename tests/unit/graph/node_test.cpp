// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/node.hpp>

#include <fusionllm/graph/graph.hpp>
#include <fusionllm/ops/ops.hpp>

#include <string>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

struct numbers {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 3>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 2>(g, "y");
    return fl::mean_squared_error(x | fl::linear<2>, y);
  }
};
struct words {
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    return fl::cross_entropy(fl::embedding(tokens, fl::parameter<11, 11>(g, "table")), targets);
  }
};

}  // namespace

TEST_CASE("tokens are counted where an input has a time, else samples") {
  const fl::graph_view with = fl::graph_of<words>(), without = fl::graph_of<numbers>();
  CHECK(fl::has_time(with));
  CHECK_FALSE(fl::has_time(without));
  CHECK(fl::tokens_in(with, {4, 8}) == 32);
  CHECK(fl::tokens_in(with, {4, 1}) == 4);  // a time of 1 is one all the same
  CHECK(fl::tokens_in(without, {4, 8}) == 4);
  CHECK(fl::name_of_tokens(with) == std::string("tokens"));
  CHECK(fl::name_of_tokens(without) == std::string("samples"));
}
