// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization over the last dimension (Zhang and Sennrich, arXiv 1910.07467), with scale.
#pragma once

#include "norm_object.hpp"

namespace fusionllm::inline v0 {

struct rms_norm_op : operator_base {
  static constexpr std::string_view name = "rms_norm";
  static constexpr std::string_view scope = "norm";
  static constexpr bool shifts = false;
  static constexpr bool per_time = true;
  static constexpr unsigned saves_inputs = 0b1;
  /// The reciprocal root of every row.
  static constexpr u64 saved(const op_view& v) { return u64(v.in[0].rows()); }
  static constexpr u64 flops(const op_view& v) { return 4 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 7 * u64(v.out.count()); }
  static constexpr u64 flops_backward_weight(const op_view& v) { return 3 * u64(v.out.count()); }
};

/// (..., features) -> x / sqrt(mean of x^2 + epsilon) * weight; parameter `weight` (features).
inline constexpr norm_object<rms_norm_op> rms_norm{};

}  // namespace fusionllm::inline v0
