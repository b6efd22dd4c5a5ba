// SPDX-License-Identifier: Apache-2.0
// Pictures of any size to one size: scaled so that the shorter side fits, the middle cut out. A plane is filtered by a
// triangle as wide as the scale (bilinear, without the moire of skipped pixels), rows first, in double.
#pragma once

#include <algorithm>
#include <cmath>

#include "image_set.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Weights of the pixels that one output pixel sees.
struct scale_window {
  i64 first = 0;
  std::vector<double> weights{};
};

/// Windows of `to` output pixels, of which the first lies at `offset`, on an axis of `from` pixels scaled by `scale`
/// (input pixels an output pixel).
inline std::vector<scale_window> scale_windows(i64 from, i64 to, double scale, double offset) {
  const double radius = (std::max)(scale, 1.0);
  std::vector<scale_window> windows(std::size_t(to), scale_window{});
  for (i64 i = 0; i < to; ++i) {
    scale_window& w = windows[std::size_t(i)];
    const double centre = (double(i) + offset + 0.5) * scale;
    w.first = std::clamp(i64(std::floor(centre - radius)), i64(0), from - 1);
    const i64 last = std::clamp(i64(std::ceil(centre + radius)), w.first + 1, from);
    double sum = 0;
    for (i64 p = w.first; p < last; ++p) {
      w.weights.push_back((std::max)(0.0, 1 - std::abs(double(p) + 0.5 - centre) / radius));
      sum += w.weights.back();
    }
    for (double& x : w.weights) x /= sum;
  }
  return windows;
}

inline u8 byte_of(double x) { return u8(std::clamp(x + 0.5, 0.0, 255.0)); }

/// The middle of `from`, as large as the shorter side allows, scaled to height x width.
inline void scale_to(const picture_view& from, i64 height, i64 width, picture& to) {
  const double scale = (std::min)(double(from.height) / double(height), double(from.width) / double(width));
  const auto columns = scale_windows(from.width, width, scale, (double(from.width) / scale - double(width)) / 2);
  const auto rows = scale_windows(from.height, height, scale, (double(from.height) / scale - double(height)) / 2);
  to.channels = from.channels, to.height = height, to.width = width;
  to.pixels.resize(std::size_t(from.channels * height * width));
  const i64 top = rows.front().first, bottom = rows.back().first + i64(rows.back().weights.size());
  std::vector<double> narrow(std::size_t((bottom - top) * width));
  for (i64 c = 0; c < from.channels; ++c) {
    for (i64 y = top; y < bottom; ++y)
      for (i64 x = 0; x < width; ++x) {
        const scale_window& w = columns[std::size_t(x)];
        const u8* p = from.row(c, y) + w.first;
        double sum = 0;
        for (std::size_t k = 0; k < w.weights.size(); ++k) sum += w.weights[k] * p[k];
        narrow[std::size_t((y - top) * width + x)] = sum;
      }
    u8* out = to.pixels.data() + c * height * width;
    for (const scale_window& w : rows)
      for (i64 x = 0; x < width; ++x) {
        double sum = 0;
        for (std::size_t k = 0; k < w.weights.size(); ++k)
          sum += w.weights[k] * narrow[std::size_t((w.first - top + i64(k)) * width + x)];
        *out++ = byte_of(sum);
      }
  }
}

}  // namespace detail

}  // namespace fusionllm::inline v0
