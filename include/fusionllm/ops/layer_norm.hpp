// SPDX-License-Identifier: Apache-2.0
// Layer normalization over the last dimension (Ba et al., arXiv 1607.06450), with scale and shift.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct layer_norm_op : operator_base {
  static constexpr std::string_view name = "layer_norm";
  static constexpr bool per_time = true;
  static constexpr unsigned saves_inputs = 0b1;
  /// Mean and reciprocal standard deviation of every row: first all means, then all reciprocals.
  static constexpr u64 saved(const op_view& v) { return 2 * u64(v.in[0].rows()); }
  static constexpr u64 flops(const op_view& v) { return 8 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 10 * u64(v.out.count()); }
  static constexpr u64 flops_backward_weight(const op_view& v) { return 4 * u64(v.out.count()); }
};

/// (..., features) -> the same; parameters `weight` and `bias` (features).
struct layer_norm_object : operator_object_base {
  std::string_view scope = "ln";
  double epsilon = 1e-5;
  constexpr layer_norm_object named(std::string_view n) const {
    auto c = *this;
    c.scope = n;
    return c;
  }
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::last < 0)
      return shape_mismatch<layer_norm_op, S, fixed_last_extent>{};
    else {
      const auto before = x.g->enter(scope);
      const int w = x.g->add_parameter("weight", extents_of<shape<S::last>>(), ones, false);
      const int b = x.g->add_parameter("bias", extents_of<shape<S::last>>(), zeros, false);
      auto y = record<layer_norm_op, real, S>(x.g, from(x.id), {w, b}, {{}, epsilon});
      x.g->leave(before);
      return y;
    }
  }
};
inline constexpr layer_norm_object layer_norm{};

}  // namespace fusionllm::inline v0
