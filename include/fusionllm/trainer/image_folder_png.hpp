// SPDX-License-Identifier: Apache-2.0
// A PNG picture from memory, by libpng (CMake: fusionllm::images). Chunks are walked first, so that a cut file is found
// and a size refused before libpng sees them. Alpha is dropped, 16 bits become 8, palettes become colours.
#pragma once

#include <png.h>

#include <cstring>

#include "image_folder_bounds.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline bool is_png(std::span<const u8> bytes) {
  static constexpr u8 magic[8] = {0x89, 'P', 'N', 'G', 0x0D, 0x0A, 0x1A, 0x0A};
  return bytes.size() >= 8 && std::memcmp(bytes.data(), magic, 8) == 0;
}

/// Errors: errc::data when a chunk is cut off, there is no end, or a size is out of range.
inline void check_png_chunks(std::span<const u8> bytes, const std::string& path) {
  const auto number = [&](std::size_t at) {
    return u64(bytes[at]) << 24 | u64(bytes[at + 1]) << 16 | u64(bytes[at + 2]) << 8 | u64(bytes[at + 3]);
  };
  for (std::size_t at = 8; bytes.size() - at >= 12;) {
    const u64 length = number(at), left = bytes.size() - at - 12;
    const auto type = std::string_view(reinterpret_cast<const char*>(bytes.data()) + at + 4, 4);
    if (at == 8 && (type != "IHDR" || length != 13)) refuse_picture(path, "has no PNG header: it is damaged");
    if (length > left) break;
    if (at == 8) {
      const u64 height = number(at + 12), width = number(at + 8), colour = u64(bytes[at + 17]);
      check_picture_size(path, height, width);
      const u64 bits = u64(bytes[at + 16]) * (colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1);
      check_picture_content(path, height, width, height * (width * bits / 8) / 1032, bytes.size());  // deflate's best is 1,032 to 1
    }
    if (type == "IEND") return;
    at += 12 + std::size_t(length);
  }
  refuse_picture(path, "ends before its PNG end mark: it is cut off; copy it again");
}

/// Errors: errc::data, naming `path`.
inline void read_png(std::span<const u8> bytes, const std::string& path, picture& to) {
  check_png_chunks(bytes, path);
  struct control {
    png_image image{};
    ~control() { ::png_image_free(&image); }
  } png;
  png.image.version = PNG_IMAGE_VERSION;
  const auto refuse = [&] { refuse_picture(path, std::string("is damaged (libpng: ") + png.image.message + "): copy it again"); };
  if (!::png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size())) refuse();
  check_picture_size(path, png.image.height, png.image.width);
  const bool colour = png.image.format & PNG_FORMAT_FLAG_COLOR, alpha = png.image.format & PNG_FORMAT_FLAG_ALPHA;
  png.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  png.image.format = (colour ? PNG_FORMAT_FLAG_COLOR : 0u) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0u);
  const i64 channels = colour ? 3 : 1, stride = channels + alpha;
  to.channels = channels, to.height = png.image.height, to.width = png.image.width;
  std::vector<u8> mixed(std::size_t(to.height * to.width * stride));
  if (!::png_image_finish_read(&png.image, nullptr, mixed.data(), 0, nullptr)) refuse();
  take_planes(mixed, stride, to);
}

}  // namespace detail

}  // namespace fusionllm::inline v0
