// SPDX-License-Identifier: Apache-2.0
// The square window that convolution and pooling slide over an image, and what it makes of an image's extents.
#pragma once

#include "../graph/tensor.hpp"

namespace fusionllm::inline v0 {

/// As in PyTorch: `padding` on each side, `dilation` between taps.
struct window {
  i64 kernel = 1;
  i64 stride = 1;
  i64 padding = 0;
  i64 dilation = 1;
  constexpr bool operator==(const window&) const = default;
  /// Positions along an extent of n; 0 or less: the window is larger than the padded image.
  constexpr i64 positions(i64 n) const {
    const i64 room = n + 2 * padding - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

/// What was expected, for `shape_mismatch`: (batch, channels, height, width) with all but the batch fixed.
struct batch_of_images;
template <i64 N>
struct channels_divisible_by;
template <i64 N>
struct image_of_at_least;

namespace detail {

template <class S>
constexpr bool is_image() {
  if constexpr (S::rank == 4)
    return S::dims[1] > 0 && S::dims[2] > 0 && S::dims[3] > 0;
  else
    return false;
}

/// The shape of `Channels` images, one for each of W's positions on the images of S.
template <class S, i64 Channels, window W>
using image_after = shape<S::dims[0], Channels, W.positions(S::dims[2]), W.positions(S::dims[3])>;

template <class S, window W>
constexpr bool window_fits() {
  return W.positions(S::dims[2]) > 0 && W.positions(S::dims[3]) > 0;
}

template <window W>
struct check_window {
  static_assert(W.kernel >= 1 && W.kernel <= 255 && W.stride >= 1 && W.dilation >= 1 && W.padding >= 0,
                "a window needs a kernel of 1 to 255, stride and dilation of 1 or more, padding of 0 or more");
  static constexpr i64 extent = W.dilation * (W.kernel - 1) + 1;  ///< of the window itself
};

}  // namespace detail

}  // namespace fusionllm::inline v0
