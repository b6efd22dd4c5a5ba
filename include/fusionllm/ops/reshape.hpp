// SPDX-License-Identifier: Apache-2.0
// The same elements in the same order under another shape.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct reshape_op : operator_base {
  static constexpr std::string_view name = "reshape";
  static constexpr bool in_place = true;
  static constexpr unsigned passes_cotangent = 0b1;
  static constexpr u64 flops(const op_view&) { return 0; }
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
};

namespace detail {
/// How often `batch` and `time` are factors of a shape's count, and the product of the other extents.
struct symbolic_count {
  int batches = 0, times = 0;
  i64 fixed = 1;
  constexpr bool operator==(const symbolic_count&) const = default;
};
template <class S>
constexpr symbolic_count count_of() {
  symbolic_count c;
  for (i64 d : S::dims) {
    if (d == batch)
      ++c.batches;
    else if (d == time)
      ++c.times;
    else
      c.fixed *= d;
  }
  return c;
}
}  // namespace detail

/// x as (D...), which has as many elements for every batch and time: (batch, time, 6) as (batch, time, 2, 3).
template <i64... D>
struct reshape_object : operator_object_base {
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (detail::count_of<S>() != detail::count_of<shape<D...>>())
      return shape_mismatch<reshape_op, S, shape<D...>>{};
    else
      return record<reshape_op, real, shape<D...>>(x.g, from(x.id));
  }
};
template <i64... D>
inline constexpr reshape_object<D...> reshape{};

}  // namespace fusionllm::inline v0
