// SPDX-License-Identifier: Apache-2.0
// y = x W^T + b over the last dimension, and the projection onto a table that the model also uses elsewhere (tied).
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct linear_op : operator_base {
  static constexpr std::string_view name = "linear";
  static constexpr bool per_time = true;
  static constexpr unsigned saves_inputs = 0b1;
  static constexpr u64 flops(const op_view& v) { return 2 * u64(v.out.count()) * u64(v.in[0].last()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return flops(v); }
  static constexpr u64 flops_backward_weight(const op_view& v) { return flops(v); }
};

/// (..., in) -> (..., Out); parameters `weight` (Out, in) and `bias` (Out).
template <i64 Out>
struct linear_object : named_object<linear_object<Out>> {
  initializer init = fan_in;
  bool has_bias = true;

  constexpr linear_object() : named_object<linear_object>("linear") {}
  constexpr linear_object initialized(initializer i) const {
    return this->changed([i](linear_object& c) { c.init = i; });
  }
  constexpr linear_object without_bias() const {
    return this->changed([](linear_object& c) { c.has_bias = false; });
  }

  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::last < 0)
      return shape_mismatch<linear_op, S, fixed_last_extent>{};
    else {
      const auto before = x.g->enter(this->scope);
      const int weight = x.g->add_parameter("weight", extents_of<shape<Out, S::last>>(), init, true);
      const int bias = has_bias ? x.g->add_parameter("bias", extents_of<shape<Out>>(), zeros, false) : -1;
      auto y = record<linear_op, real, with_last<S, Out>>(x.g, from(x.id), {weight, bias});
      x.g->leave(before);
      return y;
    }
  }
};
template <i64 Out>
inline constexpr linear_object<Out> linear{};

struct project_op;  // the name that errors show; the node is a `linear_op`

/// x (..., features) times the transpose of a table (Rows, features) -> (..., Rows).
template <class S, class G, i64 Rows, i64 Features>
constexpr auto project(tensor<real, S, G> x, parameter_handle<shape<Rows, Features>, G> table) {
  if constexpr (S::last != Features)
    return shape_mismatch<project_op, S, shape<Rows, Features>>{};
  else
    return record<linear_op, real, with_last<S, Rows>>(x.g, from(x.id), {table.id, -1});
}

}  // namespace fusionllm::inline v0
