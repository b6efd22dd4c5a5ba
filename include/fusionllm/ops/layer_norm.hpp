// SPDX-License-Identifier: Apache-2.0
// Layer normalization over the last dimension (Ba et al., arXiv 1607.06450), with scale and shift.
#pragma once

#include "norm_object.hpp"

namespace fusionllm::inline v0 {

struct layer_norm_op : operator_base {
  static constexpr std::string_view name = "layer_norm";
  static constexpr std::string_view scope = "ln";
  static constexpr bool shifts = true;
  static constexpr bool per_time = true;
  static constexpr unsigned saves_inputs = 0b1;
  /// Mean and reciprocal standard deviation of every row: first all means, then all reciprocals.
  static constexpr u64 saved(const op_view& v) { return 2 * u64(v.in[0].rows()); }
  static constexpr u64 flops(const op_view& v) { return 8 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 10 * u64(v.out.count()); }
  static constexpr u64 flops_backward_weight(const op_view& v) { return 4 * u64(v.out.count()); }
};

/// (..., features) -> the same; parameters `weight` and `bias` (features).
inline constexpr norm_object<layer_norm_op> layer_norm{};

}  // namespace fusionllm::inline v0
