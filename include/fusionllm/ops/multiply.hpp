// SPDX-License-Identifier: Apache-2.0
// Element-wise product of two tensors of one shape.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct multiply_op : operator_base {
  static constexpr std::string_view name = "multiply";
  static constexpr bool elementwise = true;
  static constexpr bool commutes = true;
  static constexpr bool in_place = true;
  static constexpr unsigned saves_inputs = 0b11;
  static constexpr u64 flops_backward_input(const op_view& v) { return 2 * u64(v.out.count()); }
  template <class T>
  FL_HD static constexpr T apply(scalar_part part, T x, T y, T d, const scalar_args&) {
    switch (part) {
      case scalar_part::value:
        return x * y;
      case scalar_part::d_first:
        return d * y;
      case scalar_part::d_second:
        return d * x;
    }
    return d;
  }
};

/// x * y; both of one shape.
template <class S, class U, class G>
constexpr auto multiply(tensor<real, S, G> x, tensor<real, U, G> y) {
  if constexpr (!std::is_same_v<S, U>)
    return shape_mismatch<multiply_op, U, S>{};
  else
    return record<multiply_op, real, S>(x.g, from(x.id, y.id));
}
template <class S, class U, class G>
constexpr auto operator*(tensor<real, S, G> x, tensor<real, U, G> y) {
  return multiply(x, y);
}

}  // namespace fusionllm::inline v0
