// SPDX-License-Identifier: Apache-2.0
// A range of a tensor along one axis. (The slice of a graph that an output needs is graph/slice.hpp's.)
#pragma once

#include "transpose.hpp"

namespace fusionllm::inline v0 {

/// attr.n: axis, first index, end.
struct slice_op : operator_base {
  static constexpr std::string_view name = "slice";
  static constexpr u64 flops(const op_view&) { return 0; }
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
};

/// What was expected, for `shape_mismatch`: an extent of at least N, known at compile time, at this axis.
template <int Axis, i64 N>
struct fixed_extent_of_at_least;

namespace detail {
template <class S, int A, i64 N, class I = std::make_index_sequence<S::rank>>
struct with_extent;
template <class S, int A, i64 N, std::size_t... I>
struct with_extent<S, A, N, std::index_sequence<I...>> {
  using type = shape<(int(I) == A ? N : S::dims[I])...>;
};
}  // namespace detail

template <int Axis, i64 From, i64 To>
struct slice_object : operator_object_base {
  static_assert(0 <= From && From < To, "slice<Axis, From, To> takes indices From up to, but not including, To");
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    constexpr int a = detail::axis_of<S>(Axis);
    if constexpr (a < 0)
      return shape_mismatch<slice_op, S, shape_with_axis<Axis>>{};
    else if constexpr (S::dims[std::size_t(a)] < To)
      return shape_mismatch<slice_op, S, fixed_extent_of_at_least<Axis, To>>{};
    else
      return record<slice_op, real, typename detail::with_extent<S, a, To - From>::type>(x.g, from(x.id), {-1, -1},
                                                                                         {{a, From, To}, 0});
  }
};
/// Indices From .. To - 1 of an axis, negative axes counted from the end: `x | slice<-1, 0, 64>()`.
template <int Axis, i64 From, i64 To>
constexpr slice_object<Axis, From, To> slice() {
  return {};
}

}  // namespace fusionllm::inline v0
