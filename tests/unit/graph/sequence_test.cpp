// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/sequence.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
constexpr auto block = fl::layer_norm | fl::linear<8> | fl::gelu | fl::linear<4>;
struct piped {
  static constexpr auto define(auto& g) { return fl::input<fl::real, fl::batch, 4>(g, "x") | block | fl::relu; }
};
struct called {
  static constexpr auto define(auto& g) { return fl::relu(block(fl::input<fl::real, fl::batch, 4>(g, "x"))); }
};
struct repeated {
  static constexpr auto define(auto& g) {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::repeat<3>(block, "layer");
  }
};
struct by_hand {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    for (unsigned i = 0; i < 3; ++i) {
      fl::name n("layer.");
      n.put_number(i);
      x = x | fl::scoped(n.view(), block);  // the name's text need not outlive the call
    }
    return x;
  }
};
struct nothing_repeated {
  static constexpr auto define(auto& g) {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::repeat<0>(block) | fl::relu;
  }
};
}  // namespace

TEST_CASE("a sequence applies its parts in order, however it is written") {
  CHECK(fl::fingerprint(fl::graph_of<piped>()) == fl::fingerprint(fl::graph_of<called>()));
  CHECK(fl::graph_of<piped>().size() == 6);
}
TEST_CASE("repeat makes copies with parameters of their own") {
  const fl::graph_view g = fl::graph_of<repeated>();
  CHECK(g.params.size() == 3 * 6);
  CHECK(g.params[6].path.view() == "layer.1.ln.weight");
  CHECK(fl::fingerprint(g) == fl::fingerprint(fl::graph_of<by_hand>()));
  CHECK(fl::graph_of<nothing_repeated>().size() == 2);
}
