// SPDX-License-Identifier: Apache-2.0
// A gzip stream in memory, unpacked piece by piece by zlib, so that its reader decides on the memory. Needs zlib (CMake:
// fusionllm::images).
#pragma once

#include <zlib.h>

#include <algorithm>
#include <span>
#include <string>

#include "../core/error.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Whether bytes begin as a gzip stream does.
inline bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

class gzip_reader {
 public:
  /// A byte of deflate holds at most 1,032 (the longest match, 258 bytes, in two bits).
  static constexpr u64 largest_ratio = 1032;

  /// `path` is for errors. Errors: errc::resource.
  gzip_reader(std::span<const std::byte> packed, const std::string& path) : packed_(packed), path_(path) {
    if (::inflateInit2(&stream_, 15 + 16) != Z_OK) fail(errc::resource, "zlib has no memory to unpack '", path_, "'");
  }
  ~gzip_reader() { ::inflateEnd(&stream_); }
  gzip_reader(const gzip_reader&) = delete;
  gzip_reader& operator=(const gzip_reader&) = delete;

  /// Unpacks the next bytes; fewer than asked for only at the end. Errors: errc::data: damaged or cut off.
  std::size_t read(std::span<u8> to) {
    std::size_t made = 0;
    while (made < to.size() && (!ended_ || next_member())) {
      constexpr std::size_t most = std::size_t(1) << 30;  // zlib counts in 32 bits
      const auto in = (std::min)(packed_.size() - at_, most), out = (std::min)(to.size() - made, most);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.data() + at_));
      stream_.avail_in = uInt(in);
      stream_.next_out = to.data() + made;
      stream_.avail_out = uInt(out);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      at_ += in - stream_.avail_in;
      made += out - stream_.avail_out;
      if (status == Z_STREAM_END) {
        ended_ = true;
      } else if (status == Z_BUF_ERROR && at_ == packed_.size()) {
        fail(errc::data, "gzip file '", path_, "' of ", packed_.size(), " bytes is cut off: copy it again");
      } else if (status == Z_MEM_ERROR) {
        fail(errc::resource, "zlib has no memory to unpack '", path_, "'");
      } else if (status != Z_OK) {
        fail(errc::data, "gzip file '", path_, "' is damaged near byte ", at_, " (zlib: ",
             stream_.msg ? stream_.msg : "no reason given", "): copy it again");
      }
    }
    return made;
  }

  /// Reads what must be its end: checksum, length, and nothing behind. Errors: errc::data.
  void expect_end() {
    u8 more;
    if (read({&more, 1}) != 0) fail(errc::data, "gzip file '", path_, "' holds more than its dimensions say: it is damaged");
    if (at_ != packed_.size())
      fail(errc::data, "gzip file '", path_, "' has ", packed_.size() - at_, " bytes behind its end: it is damaged");
  }

 private:
  // A gzip file may be several streams, one behind the other.
  bool next_member() {
    if (!is_gzip(packed_.subspan(at_))) return false;
    ended_ = false;
    return ::inflateReset(&stream_) == Z_OK;
  }

  std::span<const std::byte> packed_;
  const std::string& path_;
  std::size_t at_ = 0;
  bool ended_ = false;
  z_stream stream_{};
};

}  // namespace detail

}  // namespace fusionllm::inline v0
