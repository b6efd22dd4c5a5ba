// SPDX-License-Identifier: Apache-2.0
// The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel, arXiv 1606.08415), as GPT-2 uses it:
// x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), computed as x / (1 + exp(-2u)), which loses no digits where
// tanh is near -1.
#pragma once

#include "../graph/sequence.hpp"
#include "exponential.hpp"

namespace fusionllm::inline v0 {

struct gelu_op : operator_base {
  static constexpr std::string_view name = "gelu";
  static constexpr bool elementwise = true;
  static constexpr unsigned saves_inputs = 0b1;
  static constexpr u64 flops(const op_view& v) { return 10 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 15 * u64(v.out.count()); }
  template <class T>
  FL_HD static T apply(scalar_part part, T x, T, T d, const scalar_args&) {
    const T scale = T(2 * 0.7978845608028653558798921198687637);  // 2 sqrt(2/pi)
    const T cubic = T(0.044715);
    const T e = exponential(-scale * (x + cubic * x * x * x));
    const T s = T(1) / (T(1) + e);
    if (part == scalar_part::value) return x * s;
    const T slope = scale * (T(1) + T(3) * cubic * x * x);
    return d * (s + x * s * (e * s) * slope);  // e s = 1 - s
  }
};

inline constexpr same_shape_object<gelu_op> gelu{};

}  // namespace fusionllm::inline v0
