// SPDX-License-Identifier: Apache-2.0
// exp(x) over its sum along the last dimension.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct softmax_op : operator_base {
  static constexpr std::string_view name = "softmax";
  static constexpr bool per_time = true;
  static constexpr bool in_place = true;
  static constexpr bool saves_output = true;
  static constexpr u64 flops(const op_view& v) { return 5 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 4 * u64(v.out.count()); }
};

/// (..., classes) -> the same; every row of the last dimension sums to 1.
inline constexpr same_shape_object<softmax_op> softmax{};

}  // namespace fusionllm::inline v0
