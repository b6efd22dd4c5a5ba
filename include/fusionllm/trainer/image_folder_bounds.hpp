// SPDX-License-Identifier: Apache-2.0
// What a picture file may be: sizes are checked before a decoder gets memory for them.
#pragma once

#include <span>
#include <string>

#include "image_set.hpp"

namespace fusionllm::inline v0 {

inline constexpr i64 largest_picture_side = 32768;
inline constexpr i64 largest_picture_pixels = i64(1) << 26;
inline constexpr u64 largest_picture_file = u64(1) << 28;

namespace detail {

[[noreturn]] inline void refuse_picture(const std::string& path, const std::string& why) {
  fail(errc::data, "picture '", path, "' ", why);
}

/// Errors: errc::data.
inline void check_picture_size(const std::string& path, u64 height, u64 width) {
  constexpr u64 side = u64(largest_picture_side), pixels = u64(largest_picture_pixels);
  if (height < 1 || width < 1 || height > side || width > side || height * width > pixels)
    fail(errc::data, "picture '", path, "' says that it has ", height, " x ", width, " pixels, expected 1 to ", side,
         " a side and ", pixels, " at most: it is damaged, or too large to train on");
}

/// A size that a file of so many bytes cannot hold, however well it is packed, is refused. Errors: errc::data.
inline void check_picture_content(const std::string& path, u64 height, u64 width, u64 least_bytes, u64 bytes) {
  if (least_bytes > bytes)
    fail(errc::data, "picture '", path, "' says that it has ", height, " x ", width, " pixels, which its ", bytes,
         " bytes cannot hold: it is cut off or damaged");
}

/// Pixels of `stride` bytes each, of which the first `channels` are kept, as planes.
inline void take_planes(const std::vector<u8>& mixed, i64 stride, picture& to) {
  const i64 plane = to.height * to.width;
  to.pixels.resize(std::size_t(to.channels * plane));
  for (i64 c = 0; c < to.channels; ++c)
    for (i64 i = 0; i < plane; ++i) to.pixels[std::size_t(c * plane + i)] = mixed[std::size_t(i * stride + c)];
}

}  // namespace detail

}  // namespace fusionllm::inline v0
