// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al., 2014), inverted: in training x / (1 - p) with probability 1 - p, else 0; in inference x.
// The random word of an element is a function of seed, step, micro-batch, node and index.
#pragma once

#include "../core/philox.hpp"
#include "../graph/sequence.hpp"
#include "exponential.hpp"

namespace fusionllm::inline v0 {

struct dropout_op : operator_base {
  static constexpr std::string_view name = "dropout";
  static constexpr bool elementwise = true;
  static constexpr bool random = true;
  template <class T>
  FL_HD static constexpr T apply(scalar_part part, T x, T, T d, const scalar_args& a) {
    const T value = part == scalar_part::value ? x : d;
    if (!a.training) return value;
    return choose(uniform(a.random) >= float(a.attr.x), value * T(1 / (1 - a.attr.x)), T(0));
  }
};

struct dropout_object : operator_object_base {
  double p;
  constexpr explicit dropout_object(double p_) : p(p_) {}
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if (!(p >= 0 && p < 1)) x.g->report(model_problem::bad_probability, std::size_t(x.id));
    return record<dropout_op, real, S>(x.g, from(x.id), {-1, -1}, {{}, p});
  }
};
/// Drops each element with probability p in training.
constexpr dropout_object dropout(double p) { return dropout_object(p); }

}  // namespace fusionllm::inline v0
