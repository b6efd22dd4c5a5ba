// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization over the last dimension (Zhang and Sennrich, arXiv 1910.07467), with scale.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct rms_norm_op : operator_base {
  static constexpr std::string_view name = "rms_norm";
  static constexpr bool per_time = true;
  static constexpr unsigned saves_inputs = 0b1;
  /// The reciprocal root of every row.
  static constexpr u64 saved(const op_view& v) { return u64(v.in[0].rows()); }
  static constexpr u64 flops(const op_view& v) { return 4 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 7 * u64(v.out.count()); }
  static constexpr u64 flops_backward_weight(const op_view& v) { return 3 * u64(v.out.count()); }
};

/// (..., features) -> x / sqrt(mean of x^2 + epsilon) * weight; parameter `weight` (features).
struct rms_norm_object : operator_object_base {
  std::string_view scope = "norm";
  double epsilon = 1e-5;
  constexpr rms_norm_object named(std::string_view n) const {
    auto c = *this;
    c.scope = n;
    return c;
  }
  constexpr rms_norm_object with_epsilon(double e) const {
    auto c = *this;
    c.epsilon = e;
    return c;
  }
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::last < 0)
      return shape_mismatch<rms_norm_op, S, fixed_last_extent>{};
    else {
      const auto before = x.g->enter(scope);
      const int w = x.g->add_parameter("weight", extents_of<shape<S::last>>(), ones, false);
      auto y = record<rms_norm_op, real, S>(x.g, from(x.id), {w, -1}, {{}, epsilon});
      x.g->leave(before);
      return y;
    }
  }
};
inline constexpr rms_norm_object rms_norm{};

}  // namespace fusionllm::inline v0
