// SPDX-License-Identifier: Apache-2.0
// Convolution of images (cross-correlation, as everybody calls it), with groups and an optional bias.
#pragma once

#include "../graph/sequence.hpp"
#include "window.hpp"

namespace fusionllm::inline v0 {

/// in[0]: (batch, channels, height, width); params: weight (out, channels / groups, kernel, kernel), bias (out) or
/// absent; attr.n: stride, padding, dilation.
struct convolution_op : operator_base {
  static constexpr std::string_view name = "convolution";
  static constexpr unsigned saves_inputs = 0b1;
  static constexpr u64 flops(const op_view& v) {
    return 2 * u64(v.out.count()) * u64(v.params[0].count() / v.params[0].d[0]);
  }
  static constexpr u64 flops_backward_input(const op_view& v) { return flops(v); }
  static constexpr u64 flops_backward_weight(const op_view& v) { return flops(v); }
};

/// (batch, channels, height, width) -> (batch, Out, ...).
template <i64 Out, window W, i64 Groups>
struct convolution_object : named_object<convolution_object<Out, W, Groups>> {
  static_assert(Groups >= 1 && Out >= 1 && Out % Groups == 0, "the groups of a convolution divide its outputs");
  initializer init = fan_in;
  bool has_bias = true;

  constexpr convolution_object() : named_object<convolution_object>("conv") {}
  constexpr convolution_object initialized(initializer i) const {
    return this->changed([i](convolution_object& c) { c.init = i; });
  }
  constexpr convolution_object without_bias() const {
    return this->changed([](convolution_object& c) { c.has_bias = false; });
  }

  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (!detail::is_image<S>())
      return shape_mismatch<convolution_op, S, batch_of_images>{};
    else if constexpr (S::dims[1] % Groups != 0)
      return shape_mismatch<convolution_op, S, channels_divisible_by<Groups>>{};
    else if constexpr (!detail::window_fits<S, W>())
      return shape_mismatch<convolution_op, S, image_of_at_least<detail::check_window<W>::extent - 2 * W.padding>>{};
    else {
      const auto before = x.g->enter(this->scope);
      const int weight =
          x.g->add_parameter("weight", extents_of<shape<Out, S::dims[1] / Groups, W.kernel, W.kernel>>(), init, true);
      const int bias = has_bias ? x.g->add_parameter("bias", extents_of<shape<Out>>(), zeros, false) : -1;
      auto y = record<convolution_op, real, detail::image_after<S, Out, W>>(x.g, from(x.id), {weight, bias},
                                                                            {{W.stride, W.padding, W.dilation}, 0});
      x.g->leave(before);
      return y;
    }
  }
};
/// `convolution<64, window{.kernel = 3, .padding = 1}>`
template <i64 Out, window W, i64 Groups = 1>
inline constexpr convolution_object<Out, W, Groups> convolution{};

}  // namespace fusionllm::inline v0
