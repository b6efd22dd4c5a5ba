// SPDX-License-Identifier: Apache-2.0
// Picture files that tests write: IDX, gzip, CIFAR records, PNG and JPEG by their libraries, and random damage.
#pragma once

#include <cstdio>
#include <cstdlib>
// After cstdio, whose names it needs.
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include <fusionllm/core/philox.hpp>
#include <fusionllm/trainer/image_set.hpp>
#include <string>
#include <vector>

namespace fusionllm_test {

/// Bytes that look random, the same for the same seed.
inline std::string noise(std::size_t n, fusionllm::u64 seed) {
  std::string s(n, '\0');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(fusionllm::random_word({seed, 0, 0, 77}, i));
  return s;
}

inline std::string big_endian(std::initializer_list<fusionllm::u32> values) {
  std::string s;
  for (auto v : values)
    for (int shift = 24; shift >= 0; shift -= 8) s += static_cast<char>(v >> shift);
  return s;
}

/// The header of an IDX file of bytes, and its values.
inline std::string idx(std::initializer_list<fusionllm::u32> dims, const std::string& values) {
  return std::string({0, 0, 8, static_cast<char>(dims.size())}) + big_endian(dims) + values;
}

inline std::string gzip(const std::string& bytes) {
  z_stream z{};
  if (::deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string out(::deflateBound(&z, uLong(bytes.size())) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = uInt(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = uInt(out.size());
  if (::deflate(&z, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(z.total_out);
  ::deflateEnd(&z);
  return out;
}

/// A picture with pixels mixed, as files have them.
inline std::string png(fusionllm::i64 height, fusionllm::i64 width, fusionllm::u32 format, const std::string& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = png_uint_32(height), image.width = png_uint_32(width), image.format = format;
  png_alloc_size_t size = 0;
  if (!::png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr)) std::abort();
  std::string out(size, '\0');
  if (!::png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr)) std::abort();
  out.resize(size);
  return out;
}

inline std::string jpeg(fusionllm::i64 height, fusionllm::i64 width, int channels, const std::string& pixels, bool progressive = false) {
  jpeg_compress_struct c{};
  jpeg_error_mgr errors{};
  c.err = ::jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  ::jpeg_mem_dest(&c, &memory, &size);
  c.image_height = JDIMENSION(height), c.image_width = JDIMENSION(width), c.input_components = channels;
  c.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  ::jpeg_set_defaults(&c);
  ::jpeg_set_quality(&c, 100, TRUE);
  if (progressive) ::jpeg_simple_progression(&c);
  ::jpeg_start_compress(&c, TRUE);
  while (c.next_scanline < c.image_height) {
    auto* row = reinterpret_cast<JSAMPLE*>(const_cast<char*>(pixels.data())) + c.next_scanline * c.image_width * JDIMENSION(channels);
    ::jpeg_write_scanlines(&c, &row, 1);
  }
  ::jpeg_finish_compress(&c);
  std::string out(reinterpret_cast<char*>(memory), size);
  ::jpeg_destroy_compress(&c);
  std::free(memory);
  return out;
}

/// Calls f(damaged) for cuts of `bytes` and for copies with a few random bytes, `times` of each.
template <class F>
void each_damage(const std::string& bytes, int times, F&& f) {
  for (int i = 0; i < times; ++i) {
    f(bytes.substr(0, bytes.size() * std::size_t(i) / std::size_t(times)));
    std::string s = bytes;
    const auto key = fusionllm::random_key{std::uint64_t(i), 0, 0, 99};
    for (std::uint64_t k = 0; k < 1 + std::uint64_t(i % 4); ++k)
      s[fusionllm::random_word(key, 2 * k) % s.size()] = static_cast<char>(fusionllm::random_word(key, 2 * k + 1));
    f(s);
  }
}

/// Pictures in memory, made up: every byte says which picture, channel and pixel it is.
class made_images final : public fusionllm::image_set {
 public:
  made_images(fusionllm::i64 count, fusionllm::i64 channels, fusionllm::i64 height, fusionllm::i64 width, fusionllm::i64 classes = 10)
      : count_(count), classes_(classes), channels_(channels), height_(height), width_(width),
        pixels_(noise(std::size_t(count * channels * height * width), 5)) {}

  fusionllm::i64 count() const override { return count_; }
  fusionllm::i64 classes() const override { return classes_; }
  fusionllm::i64 label(fusionllm::i64 i) const override { return i % classes_; }
  fusionllm::picture_view read(fusionllm::i64 i, fusionllm::picture&) const override {
    return {channels_, height_, width_, reinterpret_cast<const fusionllm::u8*>(pixels_.data()) + i * channels_ * height_ * width_};
  }
  bool one_size() const override { return true; }
  fusionllm::u64 digest() const override { return 42; }
  std::string name_of(fusionllm::i64 i) const override { return "made picture " + std::to_string(i); }

 private:
  fusionllm::i64 count_, classes_, channels_, height_, width_;
  std::string pixels_;
};

}  // namespace fusionllm_test
