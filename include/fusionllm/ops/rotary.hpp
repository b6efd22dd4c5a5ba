// SPDX-License-Identifier: Apache-2.0
// Rotary positions (Su et al., arXiv 2104.09864) in Llama's convention: feature i of a head turns with feature
// i + width / 2, by the angle t * theta^(-2 i / width) at time t.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

/// in[0] (batch, time, heads * width); attr.n[0]: width; attr.x: theta. Turning back is backward: nothing is saved.
struct rotary_op : operator_base {
  static constexpr std::string_view name = "rotary";
  static constexpr bool per_time = true;
  static constexpr bool in_place = true;
  static constexpr u64 flops(const op_view& v) { return 3 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 3 * u64(v.out.count()); }
};

/// (batch, time, features) -> the same, of heads that are Width wide.
template <i64 Width>
struct rotary_object : operator_object_base {
  static_assert(Width > 0 && Width % 2 == 0, "rotary<Width> turns pairs: the width of a head is even");
  double theta = 10000;
  constexpr rotary_object with_theta(double t) const {
    auto c = *this;
    c.theta = t;
    return c;
  }
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::rank != 3)
      return shape_mismatch<rotary_op, S, rank_of<3>>{};
    else if constexpr (S::last < 0 || S::last % Width != 0)
      return shape_mismatch<rotary_op, S, last_extent_divisible_by<Width>>{};
    else
      return record<rotary_op, real, S>(x.g, from(x.id), {-1, -1}, {{Width, 0, 0}, theta});
  }
};
template <i64 Width>
inline constexpr rotary_object<Width> rotary{};

}  // namespace fusionllm::inline v0
