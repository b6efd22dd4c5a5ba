// SPDX-License-Identifier: Apache-2.0
// Losses. A loss node's value is its micro-batch's share of the mean over the whole batch: the sum of its terms times
// the reciprocal of the number of terms that count in the batch, which the run knows before the step.
#pragma once

#include <cstring>

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

/// in[0]: logits (..., classes); in[1]: targets (...); attr.n[0]: the target that does not count; attr.x: the part of a
/// target's probability that is spread evenly over all classes (label smoothing).
struct cross_entropy_op : operator_base {
  static constexpr std::string_view name = "cross_entropy";
  static constexpr int places = 1;
  static constexpr i64 place_count(const op_view& v) { return v.in[0].last(); }
  static constexpr bool is_no_place(const attributes& a, i64 x) { return x == a.n[0]; }
  static constexpr bool loss = true;
  static constexpr unsigned differentiable = 0b01;
  static constexpr unsigned saves_inputs = 0b11;
  static constexpr bool reuses_input = true;  ///< no second copy of the logits
  /// The logarithm of each row's softmax denominator, then for each row what its rounding took away: without it all of
  /// a row's probabilities are off by the same few units in the last place.
  static constexpr u64 saved(const op_view& v) { return 2 * u64(v.in[1].count()); }
  static constexpr u64 flops(const op_view& v) { return 5 * u64(v.in[0].count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 5 * u64(v.in[0].count()); }
  static u64 counted(const op_view& v, const void* targets) {
    u64 n = 0;
    for (i64 i = 0; i < v.in[1].count(); ++i) {
      std::int32_t t;
      std::memcpy(&t, static_cast<const char*>(targets) + 4 * i, 4);
      n += t != v.attr.n[0];
    }
    return n;
  }
};

namespace detail {
template <class S, class U>
constexpr bool leading_extents_equal() {
  if (S::rank != U::rank + 1) return false;
  for (int i = 0; i < U::rank; ++i)
    if (S::dims[std::size_t(i)] != U::dims[std::size_t(i)]) return false;
  return true;
}
}  // namespace detail

/// Mean softmax cross-entropy in nats of logits (..., classes) against targets (...) that differ from `ignore`. With
/// label smoothing (Szegedy et al., arXiv 1512.00567) against a distribution: 1 - smoothing for the target, and
/// `smoothing` spread evenly over all classes.
template <class S, class U, class G>
constexpr auto cross_entropy(tensor<real, S, G> logits, tensor<i32, U, G> targets, i64 ignore = -100,
                             double smoothing = 0) {
  if constexpr (!detail::leading_extents_equal<S, U>())
    return shape_mismatch<cross_entropy_op, U, S>{};
  else {
    if (!(smoothing >= 0 && smoothing < 1)) logits.g->report(model_problem::bad_probability, std::size_t(logits.id));
    return record<cross_entropy_op, real, shape<1>>(logits.g, from(logits.id, targets.id), {-1, -1},
                                                    {{ignore, 0, 0}, smoothing});
  }
}

/// in[0], in[1]: predictions and targets of one shape.
struct mean_squared_error_op : operator_base {
  static constexpr std::string_view name = "mean_squared_error";
  static constexpr bool loss = true;
  static constexpr unsigned saves_inputs = 0b11;
  static constexpr u64 flops(const op_view& v) { return 3 * u64(v.in[0].count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 2 * u64(v.in[0].count()); }
};

/// Mean over all elements of (x - y)^2.
template <class S, class U, class G>
constexpr auto mean_squared_error(tensor<real, S, G> x, tensor<real, U, G> y) {
  if constexpr (!std::is_same_v<S, U>)
    return shape_mismatch<mean_squared_error_op, U, S>{};
  else
    return record<mean_squared_error_op, real, shape<1>>(x.g, from(x.id, y.id));
}

}  // namespace fusionllm::inline v0
