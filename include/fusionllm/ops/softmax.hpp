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
struct softmax_object : operator_object_base {
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    return record<softmax_op, real, S>(x.g, from(x.id));
  }
};
inline constexpr softmax_object softmax{};

}  // namespace fusionllm::inline v0
