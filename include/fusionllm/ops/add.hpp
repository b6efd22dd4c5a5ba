// SPDX-License-Identifier: Apache-2.0
// Sum of two tensors of one shape, and the residual connection.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct add_op : operator_base {
  static constexpr std::string_view name = "add";
  static constexpr bool elementwise = true;
  static constexpr bool commutes = true;
  static constexpr bool in_place = true;
  static constexpr unsigned passes_cotangent = 0b11;
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
  template <class T>
  FL_HD static constexpr T apply(scalar_part part, T x, T y, T d, const scalar_args&) {
    return part == scalar_part::value ? x + y : d;
  }
};

/// x + y; both (..., features) of one shape.
template <class S, class U, class G>
constexpr auto add(tensor<real, S, G> x, tensor<real, U, G> y) {
  if constexpr (!std::is_same_v<S, U>)
    return shape_mismatch<add_op, U, S>{};
  else
    return record<add_op, real, S>(x.g, from(x.id, y.id));
}
template <class S, class U, class G>
constexpr auto operator+(tensor<real, S, G> x, tensor<real, U, G> y) {
  return add(x, y);
}

template <operator_object F>
struct residual_object : operator_object_base {
  F f;
  std::string_view scope;
  constexpr residual_object(F f_, std::string_view n) : f(f_), scope(n) {}
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    const auto before = x.g->enter(scope);
    auto y = f(x);
    x.g->leave(before);
    return add(x, y);
  }
};
/// x + f(x), with f's parameters under `scope` (none: where x's are).
template <operator_object F>
constexpr auto residual(F f, std::string_view scope = "") {
  return residual_object<F>(f, scope);
}

}  // namespace fusionllm::inline v0
