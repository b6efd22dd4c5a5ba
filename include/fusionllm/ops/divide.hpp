// SPDX-License-Identifier: Apache-2.0
// Element-wise quotient of two tensors of one shape.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct divide_op : operator_base {
  static constexpr std::string_view name = "divide";
  static constexpr bool elementwise = true;
  static constexpr bool in_place = true;
  static constexpr unsigned saves_inputs = 0b11;
  static constexpr u64 flops_backward_input(const op_view& v) { return 4 * u64(v.out.count()); }
  template <class T>
  FL_HD static constexpr T apply(scalar_part part, T x, T y, T d, const scalar_args&) {
    switch (part) {
      case scalar_part::value:
        return x / y;
      case scalar_part::d_first:
        return d / y;
      case scalar_part::d_second:
        return -(d / y) * (x / y);  // y * y may leave the range
    }
    return d;
  }
};

/// x / y; both of one shape. Where y is 0 the result is what IEEE arithmetic says, and so are the cotangents.
template <class S, class U, class G>
constexpr auto divide(tensor<real, S, G> x, tensor<real, U, G> y) {
  if constexpr (!std::is_same_v<S, U>)
    return shape_mismatch<divide_op, U, S>{};
  else
    return record<divide_op, real, S>(x.g, from(x.id, y.id));
}
template <class S, class U, class G>
constexpr auto operator/(tensor<real, S, G> x, tensor<real, U, G> y) {
  return divide(x, y);
}

}  // namespace fusionllm::inline v0
