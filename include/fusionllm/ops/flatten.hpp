// SPDX-License-Identifier: Apache-2.0
// All extents but the first as one: the same numbers in memory, so that neither cotangents nor, where its input has no
// other use, values are copied.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

struct flatten_op : operator_base {
  static constexpr std::string_view name = "flatten";
  static constexpr bool in_place = true;
  static constexpr unsigned passes_cotangent = 0b1;
  static constexpr u64 flops(const op_view&) { return 0; }
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
};

struct all_but_the_first_fixed;  // for `shape_mismatch`

/// (batch, ...) -> (batch, product of the others, which are fixed)
struct flatten_object : operator_object_base {
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::rank < 2 || product<S>() < 1)
      return shape_mismatch<flatten_op, S, all_but_the_first_fixed>{};
    else
      return record<flatten_op, real, shape<S::dims[0], product<S>()>>(x.g, from(x.id));
  }

 private:
  template <class S>
  static constexpr i64 product() {
    i64 n = 1;
    for (int i = 1; i < S::rank; ++i) {
      if (S::dims[std::size_t(i)] < 1) return 0;
      n *= S::dims[std::size_t(i)];
    }
    return n;
  }
};
inline constexpr flatten_object flatten{};

}  // namespace fusionllm::inline v0
