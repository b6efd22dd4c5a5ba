// SPDX-License-Identifier: Apache-2.0
// Batch normalization (Ioffe and Szegedy, arXiv 1502.03167) of each channel over a micro-batch's own samples and
// pixels. The running statistics, which inference uses, are parameters that no optimizer sees; they are copied, sent
// and saved like the others and have the same bits for every plan.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

/// in[0]: (batch, channels) or (batch, channels, height, width); params: weight, bias, running_mean, running_var
/// (channels); attr.x: epsilon. In training, a channel needs at least two values.
struct batch_norm_op : operator_base {
  static constexpr std::string_view name = "batch_norm";
  static constexpr unsigned saves_inputs = 0b1;
  /// The mean of every channel, then the biased variance of every channel.
  static constexpr u64 saved(const op_view& v) { return 2 * u64(v.params[0].count()); }
  static constexpr u64 flops(const op_view& v) { return 8 * u64(v.out.count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return 10 * u64(v.out.count()); }
  static constexpr u64 flops_backward_weight(const op_view& v) { return 4 * u64(v.out.count()); }
};

/// What batch_norm works on, for `shape_mismatch`.
struct batch_and_fixed_channels;

/// (batch, channels, ...) -> the same.
struct batch_norm_object : named_object<batch_norm_object> {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< of a micro-batch's statistics in the running ones
  constexpr batch_norm_object() : named_object("bn") {}
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (!fits<S>())
      return shape_mismatch<batch_norm_op, S, batch_and_fixed_channels>{};
    else {
      const extents channels = extents_of<shape<S::dims[1]>>();
      const auto before = x.g->enter(scope);
      const int w = x.g->add_parameter("weight", channels, ones, false);
      const int b = x.g->add_parameter("bias", channels, zeros, false);
      const int mean = x.g->add_parameter("running_mean", channels, zeros, false, momentum);
      const int variance = x.g->add_parameter("running_var", channels, ones, false, momentum);
      auto y = record<batch_norm_op, real, S>(x.g, from(x.id), {w, b, mean, variance}, {{}, epsilon});
      x.g->leave(before);
      return y;
    }
  }

 private:
  template <class S>
  static constexpr bool fits() {
    if constexpr (S::rank == 2)
      return S::dims[1] > 0;
    else if constexpr (S::rank == 4)
      return S::dims[1] > 0 && S::dims[2] > 0 && S::dims[3] > 0;
    else
      return false;
  }
};
inline constexpr batch_norm_object batch_norm{};

}  // namespace fusionllm::inline v0
