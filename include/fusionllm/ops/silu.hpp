// SPDX-License-Identifier: Apache-2.0
// The sigmoid-weighted linear unit x / (1 + exp(-x)) (Hendrycks and Gimpel, arXiv 1606.08415; Ramachandran et al., arXiv
// 1710.05941, as swish).
#pragma once

#include "../graph/sequence.hpp"
#include "exponential.hpp"

namespace fusionllm::inline v0 {

struct silu_op : operator_base {
  static constexpr std::string_view name = "silu";
  static constexpr bool elementwise = true;
  static constexpr unsigned saves_inputs = 0b1;
  static constexpr u64 flops(const op_view& v) { return 5 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 9 * u64(v.out.count()); }
  template <class T>
  FL_HD static T apply(scalar_part part, T x, T, T d, const scalar_args&) {
    const T s = T(1) / (T(1) + exponential(-x));
    if (part == scalar_part::value) return x * s;
    return d * (s * (T(1) + x * (T(1) - s)));
  }
};

inline constexpr same_shape_object<silu_op> silu{};

}  // namespace fusionllm::inline v0
