// SPDX-License-Identifier: Apache-2.0
// Rows of a table by token, and learned positions.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct embedding_op : operator_base {
  static constexpr std::string_view name = "embedding";
  static constexpr bool per_time = true;
  static constexpr int places = 0;
  static constexpr i64 place_count(const op_view& v) { return v.params[0].d[0]; }
  static constexpr unsigned differentiable = 0;
  static constexpr unsigned saves_inputs = 0b1;
  static constexpr u64 flops(const op_view&) { return 0; }
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
  static constexpr u64 flops_backward_weight(const op_view& v) { return u64(v.out.count()); }
};

/// tokens (batch, time) of 0 .. Rows-1 -> (batch, time, Features).
template <class S, class G, i64 Rows, i64 Features>
constexpr auto embedding(tensor<i32, S, G> tokens, parameter_handle<shape<Rows, Features>, G> table) {
  if constexpr (S::rank != 2)
    return shape_mismatch<embedding_op, S, rank_of<2>>{};
  else
    return record<embedding_op, real, shape<S::dims[0], S::dims[1], Features>>(tokens.g, from(tokens.id),
                                                                               {table.id, -1});
}

struct positions_op : operator_base {
  static constexpr std::string_view name = "positions";
  static constexpr bool per_time = true;
  static constexpr bool in_place = true;
  static constexpr unsigned passes_cotangent = 0b1;
  static constexpr i64 time_limit(const attributes& a) { return a.n[0]; }
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
  static constexpr u64 flops_backward_weight(const op_view& v) { return u64(v.out.count()); }
};

/// Adds row t of a learned table `weight` (MaxTime, features) to x (batch, time, features) at time t.
template <i64 MaxTime>
struct positions_object : named_object<positions_object<MaxTime>> {
  constexpr positions_object() : named_object<positions_object>("wpe") {}
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::rank != 3)
      return shape_mismatch<positions_op, S, rank_of<3>>{};
    else if constexpr (S::last < 0)
      return shape_mismatch<positions_op, S, fixed_last_extent>{};
    else {
      const auto before = x.g->enter(this->scope);
      const int w = x.g->add_parameter("weight", extents_of<shape<MaxTime, S::last>>(), normal(0.02), true);
      auto y = record<positions_op, real, S>(x.g, from(x.id), {w, -1}, {{MaxTime, 0, 0}, 0});
      x.g->leave(before);
      return y;
    }
  }
};
template <i64 MaxTime>
inline constexpr positions_object<MaxTime> positions{};

}  // namespace fusionllm::inline v0
