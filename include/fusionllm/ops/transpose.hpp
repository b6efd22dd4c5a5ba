// SPDX-License-Identifier: Apache-2.0
// Two axes of a tensor exchanged, in memory too.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

/// attr.n[0] < attr.n[1]: the axes.
struct transpose_op : operator_base {
  static constexpr std::string_view name = "transpose";
  static constexpr u64 flops(const op_view&) { return 0; }
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
};

/// What was expected, for `shape_mismatch`: a shape with this axis (negative: counted from the end).
template <int Axis>
struct shape_with_axis;

namespace detail {
/// The axis from the front, -1 if S has none.
template <class S>
constexpr int axis_of(int axis) {
  if (axis < 0) axis += S::rank;
  return axis < S::rank ? axis : -1;
}
template <class S, int A, int B, class I = std::make_index_sequence<S::rank>>
struct swapped;
template <class S, int A, int B, std::size_t... I>
struct swapped<S, A, B, std::index_sequence<I...>> {
  using type = shape<S::dims[int(I) == A ? std::size_t(B) : int(I) == B ? std::size_t(A) : I]...>;
};
}  // namespace detail

/// x with axes A and B exchanged; negative axes count from the end. transpose<> is that of the last two.
template <int A = -2, int B = -1>
struct transpose_object : operator_object_base {
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    constexpr int a = detail::axis_of<S>(A), b = detail::axis_of<S>(B);
    if constexpr (a < 0)
      return shape_mismatch<transpose_op, S, shape_with_axis<A>>{};
    else if constexpr (b < 0)
      return shape_mismatch<transpose_op, S, shape_with_axis<B>>{};
    else
      return record<transpose_op, real, typename detail::swapped<S, a, b>::type>(
          x.g, from(x.id), {-1, -1}, {{a < b ? a : b, a < b ? b : a, 0}, 0});
  }
};
template <int A = -2, int B = -1>
inline constexpr transpose_object<A, B> transpose{};

}  // namespace fusionllm::inline v0
