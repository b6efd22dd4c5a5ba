// SPDX-License-Identifier: Apache-2.0
// The windows of a pool: the pixels of one, and those that have a pixel. A member has an output or a pixel, so that nothing
// is written twice; sums are in the order of plain loops.
#pragma once

#include <fusionllm/device/reference/pool_shape.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0::detail {

/// Row or column of a window's first pixel may be negative: padding.
struct pool_windows {
  i64 planes, height, width, out_height, out_width, kernel, stride, padding;
  explicit pool_windows(const pool_shape& s)
      : planes(s.planes), height(s.height), width(s.width), out_height(s.out_height), out_width(s.out_width),
        kernel(s.kernel), stride(s.stride), padding(s.padding) {}

  FL_HD i64 outputs() const { return planes * out_height * out_width; }
  FL_HD i64 pixels() const { return planes * height * width; }

  /// f(pixel, tap) for the pixels of the window of output `at`, in ascending order.
  template <class F>
  FL_HD void each_pixel(i64 at, F&& f) const {
    const i64 c = at % out_width, r = at / out_width % out_height, plane = at / (out_width * out_height);
    for (i64 i = 0; i < kernel; ++i) {
      const i64 row = r * stride - padding + i;
      if (row < 0 || row >= height) continue;
      for (i64 j = 0; j < kernel; ++j) {
        const i64 column = c * stride - padding + j;
        if (column >= 0 && column < width) f((plane * height + row) * width + column, i * kernel + j);
      }
    }
  }
  /// f(output, tap) for the windows that have a pixel, in ascending order of outputs.
  template <class F>
  FL_HD void each_window(i64 pixel, F&& f) const {
    const i64 x = pixel % width + padding, y = pixel / width % height + padding, plane = pixel / (width * height);
    for (i64 r = first(y); r < out_height && r * stride <= y; ++r)
      for (i64 c = first(x); c < out_width && c * stride <= x; ++c)
        f((plane * out_height + r) * out_width + c, (y - r * stride) * kernel + x - c * stride);
  }
  /// What an average over the window of output `at` divides by: padding counts, what lies beyond it does not.
  FL_HD float taps(i64 at) const {
    const i64 c = at % out_width, r = at / out_width % out_height;
    const i64 rows = height + 2 * padding - r * stride, columns = width + 2 * padding - c * stride;
    return float((rows < kernel ? rows : kernel) * (columns < kernel ? columns : kernel));
  }

 private:
  FL_HD i64 first(i64 padded) const { return padded < kernel ? 0 : (padded - kernel) / stride + 1; }
};

}  // namespace fusionllm::inline v0::detail
