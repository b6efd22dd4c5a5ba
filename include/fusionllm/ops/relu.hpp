// SPDX-License-Identifier: Apache-2.0
// max(x, 0); its derivative at 0 is 0.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct relu_op : operator_base {
  static constexpr std::string_view name = "relu";
  static constexpr bool elementwise = true;
  static constexpr unsigned saves_inputs = 0b1;
  template <class T>
  FL_HD static constexpr T apply(scalar_part part, T x, T, T d, const scalar_args&) {
    if (part == scalar_part::value) return x > T(0) ? x : T(0);
    return x > T(0) ? d : T(0);
  }
};

inline constexpr same_shape_object<relu_op> relu{};

}  // namespace fusionllm::inline v0
