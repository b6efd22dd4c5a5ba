// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/index_check.hpp>

#include <fusionllm/graph/graph.hpp>
#include <fusionllm/ops/embedding.hpp>
#include <fusionllm/ops/linear.hpp>
#include <fusionllm/ops/loss.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {

struct model {  // seven tokens, three classes
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto x = fl::embedding(tokens, fl::parameter<7, 4>(g, "table"));
    return fl::cross_entropy(x | fl::linear<3>, targets);
  }
};

// A user's own operator says the same of itself.
struct lookup_op : fl::operator_base {
  static constexpr std::string_view name = "lookup";
  static constexpr int places = 0;
  static constexpr fl::i64 place_count(const fl::op_view& v) { return v.params[0].d[0] - 1; }  // row 0 is reserved
  static constexpr unsigned differentiable = 0;
};
struct own_model {
  static constexpr auto define(auto& g) {
    auto keys = fl::input<fl::i32, fl::batch, fl::time>(g, "keys");
    auto table = fl::parameter<5, 4>(g, "table");
    return fl::output("rows", fl::record<lookup_op, fl::real, fl::shape<fl::batch, fl::time, 4>>(&g, fl::from(keys.id), {table.id}));
  }
};

}  // namespace

TEST_CASE("an operator of one's own has its places checked") {
  constexpr fl::graph_view g = fl::graph_of<own_model>();
  std::vector<std::int32_t> keys{0, 3, 4, 1};
  std::vector<const void*> inputs(g.nodes.size());
  inputs[std::size_t(fl::find_input(g, "keys"))] = keys.data();
  const auto found = error_of([&] { fl::check_indices(g, inputs, {2, 2}); });
  CHECK(found.says(fl::errc::model, "element 2 of input 'keys' is 4", "expected 0 to 3", "lookup"));
}

TEST_CASE("tokens and labels without a row or class are named") {
  constexpr fl::graph_view g = fl::graph_of<model>();
  std::vector<std::int32_t> tokens{0, 1, 6, 3}, targets{2, -100, 0, 1};
  std::vector<const void*> inputs(g.nodes.size());
  const auto check = [&] { return error_of([&] { fl::check_indices(g, inputs, {2, 2}); }); };
  CHECK(check().code == fl::errc::ok);  // a peer that has none
  inputs[std::size_t(fl::find_input(g, "tokens"))] = tokens.data();
  inputs[std::size_t(fl::find_input(g, "targets"))] = targets.data();
  CHECK(check().code == fl::errc::ok);
  for (std::int32_t wrong : {7, -1, -100, INT32_MAX, INT32_MIN}) {
    tokens[3] = wrong;
    CHECK(check().says(fl::errc::model, "element 3 of input 'tokens' is " + std::to_string(wrong), "expected 0 to 6"));
  }
  tokens[3] = 0;
  for (std::int32_t wrong : {3, -1, INT32_MIN}) {
    targets[1] = wrong;
    CHECK(check().says(fl::errc::model, "element 1 of input 'targets' is " + std::to_string(wrong), "expected 0 to 2", "cross_entropy"));
  }
}
