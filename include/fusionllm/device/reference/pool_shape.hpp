// SPDX-License-Identifier: Apache-2.0
// The planes of a pool (a plane is one channel of one image), and the taps of its windows that lie on them.
#pragma once

#include "../../ops/pooling.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// The extents of a pool's planes: `x` outer, `y` pooled.
struct pool_shape {
  i64 planes, height, width, out_height, out_width, kernel, stride, padding;
  pool_shape(const extents& x, const extents& y, const attributes& a)
      : planes(x.d[0] * x.d[1]),
        height(x.d[2]),
        width(x.d[3]),
        out_height(y.d[2]),
        out_width(y.d[3]),
        kernel(a.n[2]),
        stride(a.n[0]),
        padding(a.n[1]) {}
  i64 pixels() const { return height * width; }
  i64 positions() const { return out_height * out_width; }

  /// Calls f(pixel, tap) for the taps of the window at (r, c) that lie on the image.
  template <class F>
  void each_tap(i64 r, i64 c, F&& f) const {
    for (i64 i = 0; i < kernel; ++i) {
      const i64 row = r * stride - padding + i;
      if (row < 0 || row >= height) continue;
      for (i64 j = 0; j < kernel; ++j) {
        const i64 column = c * stride - padding + j;
        if (column >= 0 && column < width) f(row * width + column, i * kernel + j);
      }
    }
  }
  /// The pixel at a tap of the window at (r, c).
  i64 pixel(i64 r, i64 c, i64 tap) const {
    return (r * stride - padding + tap / kernel) * width + c * stride - padding + tap % kernel;
  }
};

/// Runs planes [0, planes) in order.
struct all_planes {
  template <class F>
  void operator()(i64 planes, F&& f) const {
    f(i64(0), planes);
  }
};

}  // namespace detail

}  // namespace fusionllm::inline v0
