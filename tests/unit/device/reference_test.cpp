// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference.hpp>

#include <fusionllm/ops/ops.hpp>

#include "gradient_check.hpp"

namespace fl = fusionllm;
using fusionllm_test::check_gradients;
using fusionllm_test::distance;
using fusionllm_test::graph_runner;

namespace {

// Each model lets a table of positions into its input, so that the input of what it tests has a cotangent.
template <class F>
constexpr auto regression(auto& g, F f) {
  auto x = fl::input<fl::real, fl::batch, fl::time, 6>(g, "x");
  auto y = f(x | fl::positions<9>);
  auto target = fl::input<fl::real, fl::batch, fl::time, decltype(y)::shape_type::last>(g, "target");
  return fl::mean_squared_error(y, target);
}

struct with_linear {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) { return x | fl::linear<5> | fl::linear<7>.without_bias(); });
  }
};
struct with_layer_norm {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) { return x | fl::layer_norm; });
  }
};
template <int Heads>
struct with_attention {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) { return x | fl::causal_attention<Heads>; });
  }
};
struct with_gelu {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) { return x | fl::gelu; });
  }
};
struct with_relu {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) { return x | fl::relu; });
  }
};
struct with_dropout {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) { return x | fl::dropout(0.3); });
  }
};
struct with_add {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) { return fl::output("sum", (x | fl::linear<6>)+x) + x; });
  }
};
struct with_multiply {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) {
      auto y = x | fl::linear<6>;
      return fl::output("product", x * y) * x;
    });
  }
};
struct with_square {
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) { return x * x; });
  }
};
struct with_chain {  // gelu, times, dropout, plus: one fused node with two side inputs
  static constexpr auto define(auto& g) {
    return regression(g, [](auto x) {
      auto gate = x | fl::linear<6>;
      return ((x | fl::gelu) * gate | fl::dropout(0.2)) + x;
    });
  }
};
struct regression_of_both {  // both inputs of the loss depend on parameters
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 6>(g, "x");
    return fl::mean_squared_error(x | fl::linear<3>, x | fl::positions<9> | fl::linear<3>);
  }
};
struct tied {
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto table = fl::parameter<7, 6>(g, "table");
    auto x = fl::embedding(tokens, table) | fl::positions<9>;
    return fl::cross_entropy(fl::output("logits", fl::project(x, table)), targets, 2);
  }
};

template <class Model>
void check_sizes(int vocabulary = 1) {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{3, 1}, fl::sizes{1, 5}, fl::sizes{2, 7}, fl::sizes{3, 9}})
    check_gradients<Model>(s, vocabulary);
}

}  // namespace

TEST_CASE("gradients of linear agree with central differences") { check_sizes<with_linear>(); }
TEST_CASE("gradients of layer_norm agree with central differences") { check_sizes<with_layer_norm>(); }
TEST_CASE("gradients of attention agree with central differences") {
  check_sizes<with_attention<1>>();
  check_sizes<with_attention<2>>();
  check_sizes<with_attention<6>>();
}
TEST_CASE("gradients of gelu agree with central differences") { check_sizes<with_gelu>(); }
TEST_CASE("gradients of relu agree with central differences") { check_sizes<with_relu>(); }
TEST_CASE("gradients of dropout agree with central differences") { check_sizes<with_dropout>(); }
TEST_CASE("gradients of add agree with central differences") { check_sizes<with_add>(); }
TEST_CASE("gradients of multiply agree with central differences") {
  check_sizes<with_multiply>();
  check_sizes<with_square>();
}
TEST_CASE("gradients of a fused chain agree with central differences") { check_sizes<with_chain>(); }
TEST_CASE("gradients of mean_squared_error agree with central differences") { check_sizes<regression_of_both>(); }
TEST_CASE("gradients of embedding, positions, tied projection and cross_entropy agree with central differences") {
  check_sizes<tied>(7);
}
