// SPDX-License-Identifier: Apache-2.0
// The mean over the last dimension, or over all elements of a micro-batch.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

/// Each element of out is the mean of in.count() / out.count() elements that follow one another.
struct mean_op : operator_base {
  static constexpr std::string_view name = "mean";
  static constexpr u64 flops(const op_view& v) { return u64(v.in[0].count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return u64(v.in[0].count()); }
};

namespace detail {
template <class S, class I = std::make_index_sequence<S::rank == 1 ? 0 : S::rank - 1>>
struct without_last;
template <class S>
struct without_last<S, std::index_sequence<>> {
  using type = shape<1>;
};
template <class S, std::size_t... I>
struct without_last<S, std::index_sequence<I...>> {
  using type = shape<S::dims[I]...>;
};
}  // namespace detail

struct mean_object : operator_object_base {
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    return record<mean_op, real, typename detail::without_last<S>::type>(x.g, from(x.id));
  }
};
/// (..., n) -> (...); of a tensor of one dimension (1).
constexpr mean_object mean() { return {}; }
template <class S, class G>
constexpr auto mean(tensor<real, S, G> x) {
  return mean()(x);
}

struct mean_of_all_object : operator_object_base {
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    return record<mean_op, real, shape<1>>(x.g, from(x.id));
  }
};
/// Of all elements -> (1).
constexpr mean_of_all_object mean_of_all() { return {}; }
template <class S, class G>
constexpr auto mean_of_all(tensor<real, S, G> x) {
  return mean_of_all()(x);
}

}  // namespace fusionllm::inline v0
