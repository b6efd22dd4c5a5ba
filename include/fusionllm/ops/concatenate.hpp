// SPDX-License-Identifier: Apache-2.0
// Tensors one after another along one axis.
#pragma once

#include "slice.hpp"

namespace fusionllm::inline v0 {

/// attr.n[0]: the axis; in the others the extents of all inputs but the last, 32 bits each: backward may get no input.
struct concatenate_op : operator_base {
  static constexpr std::string_view name = "concatenate";
  /// Of input k, which is not the last.
  static constexpr i64 extent(const attributes& a, int k) {
    return i64(u64(a.n[std::size_t(1 + k / 2)]) >> (k % 2 * 32) & 0xFFFFFFFFu);
  }
  static constexpr u64 flops(const op_view&) { return 0; }
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
};

namespace detail {
/// S and U differ at axis A at most, and there both are fixed.
template <class S, class U, int A>
constexpr bool joinable() {
  if constexpr (S::rank != U::rank)
    return false;
  else {
    for (int i = 0; i < S::rank; ++i) {
      const i64 x = S::dims[std::size_t(i)], y = U::dims[std::size_t(i)];
      if (i == A ? x < 0 || y < 0 : x != y) return false;
    }
    return true;
  }
}
template <int A, class... S>
constexpr i64 joined_extent() {
  return (S::dims[std::size_t(A)] + ...);
}
// The first of the shapes that cannot follow S; S itself if all can.
template <int A, class S, class... Rest>
struct first_misfit {
  using type = S;
};
template <int A, class S, class U, class... Rest>
struct first_misfit<A, S, U, Rest...> {
  using type = typename std::conditional_t<joinable<S, U, A>(), first_misfit<A, S, Rest...>, first_misfit<A, U>>::type;
};
}  // namespace detail

/// Two to five tensors of one shape but for the extent at Axis (fixed; a negative axis counts from the end).
template <int Axis = -1, class S, class G, class... U>
constexpr auto concatenate(tensor<real, S, G> x, tensor<real, U, G>... rest) {
  static_assert(sizeof...(U) >= 1 && sizeof...(U) < max_inputs, "concatenate takes two to five tensors");
  constexpr int a = detail::axis_of<S>(Axis);
  if constexpr (a < 0)
    return shape_mismatch<concatenate_op, S, shape_with_axis<Axis>>{};
  else if constexpr (!(detail::joinable<S, U, a>() && ...))
    return shape_mismatch<concatenate_op, typename detail::first_misfit<a, S, U...>::type, S>{};
  else {
    const int ids[] = {x.id, rest.id...};
    const i64 extents[] = {S::dims[std::size_t(a)], U::dims[std::size_t(a)]...};
    std::array<int, max_inputs> in{-1, -1, -1, -1, -1};
    attributes attr{{a, 0, 0}, 0};
    for (std::size_t k = 0; k <= sizeof...(U); ++k) {
      in[k] = ids[k];
      if (k < sizeof...(U)) attr.n[1 + k / 2] |= i64(u64(extents[k]) << (k % 2 * 32));
    }
    using joined = typename detail::with_extent<S, a, detail::joined_extent<a, S, U...>()>::type;
    return record<concatenate_op, real, joined>(x.g, in, {-1, -1}, attr);
  }
}

}  // namespace fusionllm::inline v0
