// SPDX-License-Identifier: Apache-2.0
// Maximum and mean of each channel over a sliding window, and over the whole image.
#pragma once

#include "../graph/sequence.hpp"
#include "window.hpp"

namespace fusionllm::inline v0 {

/// attr.n: stride, padding, kernel. Padding never wins; of equal values the first does, a NaN does.
struct max_pool_op : operator_base {
  static constexpr std::string_view name = "max_pool";
  /// The tap of its window that each output came from: a byte, or two where the window has more than 256 taps.
  static constexpr i64 index_bytes(const attributes& a) { return a.n[2] <= 16 ? 1 : 2; }
  static constexpr u64 saved(const op_view& v) { return u64(v.out.count() * index_bytes(v.attr) + 3) / 4; }
  static constexpr u64 flops(const op_view& v) { return u64(v.out.count() * v.attr.n[2] * v.attr.n[2]); }
};

/// attr.n: stride, padding, kernel. Padding counts as zeros, as PyTorch's default has it.
struct average_pool_op : operator_base {
  static constexpr std::string_view name = "average_pool";
  static constexpr u64 flops(const op_view& v) { return u64(v.out.count() * v.attr.n[2] * v.attr.n[2]); }
  static constexpr u64 flops_backward_input(const op_view& v) { return flops(v); }
};

struct global_average_pool_op : operator_base {
  static constexpr std::string_view name = "global_average_pool";
  static constexpr u64 flops(const op_view& v) { return u64(v.in[0].count()); }
  static constexpr u64 flops_backward_input(const op_view& v) { return u64(v.in[0].count()); }
};

namespace detail {
template <class Op, window W>
struct pool_object : operator_object_base {
  static_assert(2 * W.padding <= W.kernel, "the padding of a pool is at most half its window");
  static_assert(W.dilation == 1, "pools have no dilation");
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (!is_image<S>())
      return shape_mismatch<Op, S, batch_of_images>{};
    else if constexpr (!window_fits<S, W>())
      return shape_mismatch<Op, S, image_of_at_least<check_window<W>::extent - 2 * W.padding>>{};
    else
      return record<Op, real, image_after<S, S::dims[1], W>>(x.g, from(x.id), {}, {{W.stride, W.padding, W.kernel}, 0});
  }
};
}  // namespace detail

/// `max_pool<window{.kernel = 3, .stride = 2, .padding = 1}>`: (batch, channels, height, width) -> (batch, channels,
/// ...)
template <window W>
inline constexpr detail::pool_object<max_pool_op, W> max_pool{};
template <window W>
inline constexpr detail::pool_object<average_pool_op, W> average_pool{};

struct global_average_pool_object : operator_object_base {
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (!detail::is_image<S>())
      return shape_mismatch<global_average_pool_op, S, batch_of_images>{};
    else
      return record<global_average_pool_op, real, shape<S::dims[0], S::dims[1], 1, 1>>(x.g, from(x.id));
  }
};
/// (batch, channels, height, width) -> (batch, channels, 1, 1)
inline constexpr global_average_pool_object global_average_pool{};

}  // namespace fusionllm::inline v0
