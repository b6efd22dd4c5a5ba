// SPDX-License-Identifier: Apache-2.0
// The models of make_reference.py: an operator between an input with learned positions ("x") and its result ("y").
#pragma once

#include <fusionllm/ops/ops.hpp>

namespace fusionllm_test {

namespace fl = fusionllm;

struct small_size {
  static constexpr fl::sizes run{2, 5};
  static constexpr fl::i64 features = 6, heads = 2, kv_heads = 1, turning = 2, rows = 7, positions = 9;
};
struct large_size {
  static constexpr fl::sizes run{4, 64};
  static constexpr fl::i64 features = 96, heads = 6, kv_heads = 2, turning = 16, rows = 256, positions = 64;
};

struct linear_case {
  static constexpr const char* name = "linear";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::linear<Size::features>;
  }
};
struct linear_without_bias_case {
  static constexpr const char* name = "linear_without_bias";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::linear<Size::features>.without_bias();
  }
};
struct layer_norm_case {
  static constexpr const char* name = "layer_norm";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::layer_norm;
  }
};
struct attention_case {
  static constexpr const char* name = "attention";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::causal_attention<Size::heads>;
  }
};
struct gelu_case {
  static constexpr const char* name = "gelu";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::gelu;
  }
};
struct relu_case {
  static constexpr const char* name = "relu";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::relu;
  }
};
struct add_case {
  static constexpr const char* name = "add";
  template <class Size>
  static constexpr auto apply(auto x) {
    return (x | fl::linear<Size::features>)+x;
  }
};
struct multiply_case {
  static constexpr const char* name = "multiply";
  template <class Size>
  static constexpr auto apply(auto x) {
    return (x | fl::linear<Size::features>)*x;
  }
};
struct subtract_case {
  static constexpr const char* name = "subtract";
  template <class Size>
  static constexpr auto apply(auto x) {
    return (x | fl::linear<Size::features>)-x;
  }
};
struct divide_case {
  static constexpr const char* name = "divide";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x / (x * 0.37 | fl::softmax);
  }
};
struct scale_case {
  static constexpr const char* name = "scale";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x * 0.37;
  }
};
struct silu_case {
  static constexpr const char* name = "silu";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::silu;
  }
};
struct softmax_case {
  static constexpr const char* name = "softmax";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::softmax;
  }
};
struct mean_case {
  static constexpr const char* name = "mean";
  template <class Size>
  static constexpr auto apply(auto x) {
    return fl::concatenate(fl::mean(x) | fl::reshape<fl::batch, fl::time, 1>, x | fl::slice<-1, 1, Size::features>());
  }
};
struct rms_norm_case {
  static constexpr const char* name = "rms_norm";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::rms_norm;
  }
};
struct rotary_case {
  static constexpr const char* name = "rotary";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::rotary<Size::turning>;
  }
};
struct transpose_case {
  static constexpr const char* name = "transpose";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::transpose<> | fl::softmax | fl::transpose<>;
  }
};
struct grouped_attention_case {
  static constexpr const char* name = "grouped_attention";
  template <class Size>
  static constexpr auto apply(auto x) {
    return x | fl::causal_attention<Size::heads, Size::kv_heads>;
  }
};

template <class Case, class Size>
struct regression_model {
  static constexpr const char* name = Case::name;
  using size = Size;
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, Size::features>(g, "x");
    auto target = fl::input<fl::real, fl::batch, fl::time, Size::features>(g, "target");
    auto y = Case::template apply<Size>(fl::output("x", x | fl::positions<Size::positions>));
    return fl::mean_squared_error(fl::output("y", y), target);
  }
};

template <class Size, bool Smoothed = false>
struct language_model {  // embedding, positions, tied projection, cross-entropy with an ignored target
  static constexpr const char* name = Smoothed ? "language_smoothed" : "language";
  using size = Size;
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto table = fl::parameter<Size::rows, Size::features>(g, "table");
    auto x = fl::output("x", fl::embedding(tokens, table) | fl::positions<Size::positions>);
    return fl::cross_entropy(fl::output("y", fl::project(x, table)), targets, 2, Smoothed ? 0.1 : 0.0);
  }
};

/// Calls f.template operator()<Model>() for every model of one size.
template <class Size, class F>
void for_each_model(F&& f) {
  f.template operator()<regression_model<linear_case, Size>>();
  f.template operator()<regression_model<linear_without_bias_case, Size>>();
  f.template operator()<regression_model<layer_norm_case, Size>>();
  f.template operator()<regression_model<attention_case, Size>>();
  f.template operator()<regression_model<gelu_case, Size>>();
  f.template operator()<regression_model<relu_case, Size>>();
  f.template operator()<regression_model<add_case, Size>>();
  f.template operator()<regression_model<multiply_case, Size>>();
  f.template operator()<regression_model<subtract_case, Size>>();
  f.template operator()<regression_model<divide_case, Size>>();
  f.template operator()<regression_model<scale_case, Size>>();
  f.template operator()<regression_model<silu_case, Size>>();
  f.template operator()<regression_model<softmax_case, Size>>();
  f.template operator()<regression_model<mean_case, Size>>();
  f.template operator()<regression_model<rms_norm_case, Size>>();
  f.template operator()<regression_model<rotary_case, Size>>();
  f.template operator()<regression_model<transpose_case, Size>>();
  f.template operator()<regression_model<grouped_attention_case, Size>>();
  f.template operator()<language_model<Size>>();
  f.template operator()<language_model<Size, true>>();
}

}  // namespace fusionllm_test
