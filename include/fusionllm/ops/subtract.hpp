// SPDX-License-Identifier: Apache-2.0
// Element-wise difference of two tensors of one shape.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct subtract_op : operator_base {
  static constexpr std::string_view name = "subtract";
  static constexpr bool elementwise = true;
  static constexpr bool in_place = true;
  template <class T>
  FL_HD static constexpr T apply(scalar_part part, T x, T y, T d, const scalar_args&) {
    switch (part) {
      case scalar_part::value:
        return x - y;
      case scalar_part::d_first:
        return d;
      case scalar_part::d_second:
        return -d;
    }
    return d;
  }
};

/// x - y; both of one shape.
template <class S, class U, class G>
constexpr auto subtract(tensor<real, S, G> x, tensor<real, U, G> y) {
  if constexpr (!std::is_same_v<S, U>)
    return shape_mismatch<subtract_op, U, S>{};
  else
    return record<subtract_op, real, S>(x.g, from(x.id, y.id));
}
template <class S, class U, class G>
constexpr auto operator-(tensor<real, S, G> x, tensor<real, U, G> y) {
  return subtract(x, y);
}

}  // namespace fusionllm::inline v0
