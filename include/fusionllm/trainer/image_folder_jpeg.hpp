// SPDX-License-Identifier: Apache-2.0
// A JPEG picture from memory, by libjpeg or libjpeg-turbo (CMake: fusionllm::images). What the library only warns of, such
// as a picture that ends early, is an error here; bytes that it skips without harm are not.
#pragma once

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>

#include "image_folder_bounds.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// libjpeg's objects, and where it jumps on an error. No object with a destructor lives between the jump and its target.
class jpeg_decoder {
 public:
  jpeg_decoder() {
    state_.err = ::jpeg_std_error(&errors_.base);
    errors_.base.error_exit = [](j_common_ptr c) { leave(c); };
    errors_.base.emit_message = [](j_common_ptr c, int level) {
      const int code = c->err->msg_code;
      const bool harmless =
          code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR || code == JWRN_TOO_MUCH_DATA;
      if (level < 0 && !harmless) leave(c);
    };
    errors_.base.output_message = [](j_common_ptr) {};
    watch_.base.progress_monitor = [](j_common_ptr c) {
      const auto* d = reinterpret_cast<j_decompress_ptr>(c);
      if (d->input_scan_number > most_scans) {
        std::snprintf(reinterpret_cast<failure*>(c->err)->text, JMSG_LENGTH_MAX, "more than %d scans", most_scans);
        std::longjmp(reinterpret_cast<failure*>(c->err)->target, 1);
      }
    };
  }
  ~jpeg_decoder() { ::jpeg_destroy_decompress(&state_); }
  jpeg_decoder(const jpeg_decoder&) = delete;
  jpeg_decoder& operator=(const jpeg_decoder&) = delete;

  const char* message() const { return errors_.text; }
  i64 height() const { return state_.image_height; }
  i64 width() const { return state_.image_width; }
  i64 channels() const { return state_.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3; }
  /// Of each block of 8 x 8 pixels one bit at least is coded, but by arithmetic coding.
  u64 least_bytes() const { return state_.arith_code ? 0 : u64(height()) * u64(width()) / 512; }
  bool is_four_colour() const { return state_.jpeg_color_space == JCS_CMYK || state_.jpeg_color_space == JCS_YCCK; }

  bool read_header(std::span<const u8> bytes) {
    if (setjmp(errors_.target)) return false;
    jpeg_create_decompress(&state_);
    state_.progress = &watch_.base;
    ::jpeg_mem_src(&state_, bytes.data(), static_cast<unsigned long>(bytes.size()));
    ::jpeg_read_header(&state_, TRUE);
    return true;
  }
  /// height() rows of width() * channels() bytes.
  bool read_pixels(u8* to) {
    if (setjmp(errors_.target)) return false;
    state_.out_color_space = channels() == 1 ? JCS_GRAYSCALE : JCS_RGB;
    state_.dct_method = JDCT_ISLOW;
    ::jpeg_start_decompress(&state_);
    while (state_.output_scanline < state_.output_height) {
      JSAMPROW row = to + std::size_t(state_.output_scanline) * state_.output_width * std::size_t(state_.output_components);
      ::jpeg_read_scanlines(&state_, &row, 1);
    }
    ::jpeg_finish_decompress(&state_);
    return true;
  }

 private:
  static constexpr int most_scans = 100;
  struct failure {  // libjpeg knows the first member
    jpeg_error_mgr base;
    std::jmp_buf target;
    char text[JMSG_LENGTH_MAX];
  };
  struct monitor {
    jpeg_progress_mgr base;
  };

  [[noreturn]] static void leave(j_common_ptr c) {
    auto* f = reinterpret_cast<failure*>(c->err);
    c->err->format_message(c, f->text);
    std::longjmp(f->target, 1);
  }

  failure errors_{};
  monitor watch_{};
  jpeg_decompress_struct state_{};
};

inline bool is_jpeg(std::span<const u8> bytes) { return bytes.size() >= 2 && bytes[0] == 0xFF && bytes[1] == 0xD8; }

/// Errors: errc::data, naming `path`.
inline void read_jpeg(std::span<const u8> bytes, const std::string& path, picture& to) {
  jpeg_decoder jpeg;
  const auto refuse = [&] {
    refuse_picture(path, std::string("is damaged or cut off (libjpeg: ") + jpeg.message() + "): copy it again");
  };
  if (!jpeg.read_header(bytes)) refuse();
  check_picture_size(path, u64(jpeg.height()), u64(jpeg.width()));
  check_picture_content(path, u64(jpeg.height()), u64(jpeg.width()), jpeg.least_bytes(), bytes.size());
  if (jpeg.is_four_colour()) refuse_picture(path, "is in the four colours of print, expected grey or RGB: convert it");
  to.channels = jpeg.channels(), to.height = jpeg.height(), to.width = jpeg.width();
  std::vector<u8> mixed(std::size_t(to.height * to.width * to.channels));
  if (!jpeg.read_pixels(mixed.data())) refuse();
  take_planes(mixed, to.channels, to);
}

}  // namespace detail

}  // namespace fusionllm::inline v0
