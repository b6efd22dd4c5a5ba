// SPDX-License-Identifier: Apache-2.0
// Product with a constant of the model.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

/// attr.x: the factor.
struct scale_op : operator_base {
  static constexpr std::string_view name = "scale";
  static constexpr bool elementwise = true;
  static constexpr bool in_place = true;
  template <class T>
  FL_HD static constexpr T apply(scalar_part part, T x, T, T d, const scalar_args& a) {
    return (part == scalar_part::value ? x : d) * T(a.attr.x);
  }
};

/// x * factor.
constexpr auto scale(double factor) { return same_shape_object<scale_op>({{}, factor}); }
template <class S, class G>
constexpr auto operator*(tensor<real, S, G> x, double factor) {
  return scale(factor)(x);
}
template <class S, class G>
constexpr auto operator*(double factor, tensor<real, S, G> x) {
  return scale(factor)(x);
}

}  // namespace fusionllm::inline v0
