// SPDX-License-Identifier: Apache-2.0
// Bytes of pixels to numbers with mean 0 and deviation 1 a channel: (byte / 255 - mean) / deviation, computed in double
// once for each of the 256 bytes.
#pragma once

#include <array>
#include <cmath>

#include "image_set.hpp"

namespace fusionllm::inline v0 {

/// Of each channel, of pixels from 0 (black) to 1. One entry serves all channels.
struct pixel_statistics {
  std::vector<double> mean{}, deviation{};
};

/// Measured on all pictures of a set of one size, exactly: sums of bytes are integers.
inline pixel_statistics measure_pixels(const image_set& set) {
  std::array<std::array<u64, 256>, 3> seen{};
  picture room;
  i64 channels = 1;
  for (i64 i = 0; i < set.count(); ++i) {
    const picture_view p = set.read(i, room);
    channels = p.channels;
    for (i64 c = 0; c < p.channels; ++c) {
      const u8* plane = p.row(c, 0);
      for (i64 k = 0; k < p.height * p.width; ++k) ++seen[std::size_t(c)][plane[k]];
    }
  }
  pixel_statistics s;
  for (i64 c = 0; c < channels; ++c) {
    double n = 0, sum = 0, square = 0;
    for (std::size_t v = 0; v < 256; ++v) {
      const double times = double(seen[std::size_t(c)][v]), x = double(v) / 255;
      n += times;
      sum += times * x;
    }
    const double mean = sum / n;
    for (std::size_t v = 0; v < 256; ++v)
      square += double(seen[std::size_t(c)][v]) * (double(v) / 255 - mean) * (double(v) / 255 - mean);
    s.mean.push_back(mean);
    s.deviation.push_back(square > 0 ? std::sqrt(square / n) : 1);
  }
  return s;
}

namespace detail {

/// The numbers of a channel's bytes.
template <class T>
struct pixel_table {
  std::array<T, 256> of{};

  pixel_table(const pixel_statistics& s, std::size_t channel) {
    const double mean = s.mean[s.mean.size() == 1 ? 0 : channel], deviation = s.deviation[s.deviation.size() == 1 ? 0 : channel];
    for (std::size_t v = 0; v < 256; ++v) of[v] = T((double(v) / 255 - mean) / deviation);
  }
};

/// Errors: errc::config.
inline void check(const pixel_statistics& s) {
  for (const auto* v : {&s.mean, &s.deviation})
    if (v->size() != 1 && v->size() != 3) fail(errc::config, "pixel statistics of ", v->size(), " channels, expected 1 or 3");
  for (double m : s.mean)
    if (!std::isfinite(m)) fail(errc::config, "the mean of pixels is ", m, ", expected a finite number");
  for (double d : s.deviation)
    if (!(d > 0) || !std::isfinite(d)) fail(errc::config, "the deviation of pixels is ", d, ", expected a finite number above 0");
}

}  // namespace detail

}  // namespace fusionllm::inline v0
