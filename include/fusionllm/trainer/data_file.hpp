// SPDX-License-Identifier: Apache-2.0
// A file of tokens in memory: bytes of text, or raw little-endian integers. Bytes are kept exactly as they are (a byte
// order mark and carriage returns are tokens like others), so that a position in an error is a position in the file.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/xxh3.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

enum class token_format : u8 { bytes = 1, uint16 = 2, uint32 = 4 };

constexpr const char* name_of(token_format f) {
  return f == token_format::bytes ? "bytes" : f == token_format::uint16 ? "uint16" : "uint32";
}

namespace detail {

/// An open file that closes itself.
class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(descriptor&& o) noexcept : fd_(o.release()) {}
  descriptor& operator=(descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// The whole of a regular file of `most` bytes at most. A pipe or a device is refused rather than waited for.
inline std::vector<unsigned char> read_whole_file(const std::string& path, errc code, const char* what, u64 most = ~u64(0)) {
  descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(code, "cannot open ", what, " '", path, "': ", std::strerror(errno), ": check the path");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fail(code, "cannot look at ", what, " '", path, "': ", std::strerror(errno));
  if (S_ISDIR(info.st_mode)) fail(code, what, " '", path, "' is a directory, expected a file");
  if (!S_ISREG(info.st_mode)) fail(code, what, " '", path, "' is a pipe or a device, expected a regular file");
  if (u64(info.st_size) > most) fail(code, what, " '", path, "' has ", i64(info.st_size), " bytes, expected ", most, " at most");
  std::vector<unsigned char> bytes;
  try {
    bytes.resize(std::size_t(info.st_size));
  } catch (const std::bad_alloc&) {
    fail(errc::resource, what, " '", path, "' of ", i64(info.st_size), " bytes does not fit into memory");
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const auto n = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(code, "cannot read ", what, " '", path, "': ", std::strerror(errno));
    if (n == 0) fail(code, what, " '", path, "' shrank from ", bytes.size(), " to ", at, " bytes while it was read");
    at += std::size_t(n);
  }
  return bytes;
}

}  // namespace detail

class token_file {
 public:
  /// Reads `path` and checks every token against `vocabulary`.
  /// Errors: errc::data: missing, a directory, not a whole number of tokens, a token outside the vocabulary (with its
  /// position); errc::resource: too large for memory.
  token_file(std::string path, token_format format = token_format::bytes, i64 vocabulary = 256)
      : path_(std::move(path)), format_(format), vocabulary_(vocabulary),
        bytes_(detail::read_whole_file(path_, errc::data, "data file")) {
    if (vocabulary < 1) fail(errc::data, "a vocabulary of ", vocabulary, ", expected 1 or more");
    const std::size_t size = std::size_t(format_);
    if (bytes_.size() % size != 0)
      fail(errc::data, "data file '", path_, "' has ", bytes_.size(), " bytes, expected a multiple of ", size, " (",
           name_of(format_), " tokens): it is cut off, or of another format");
    if (vocabulary < (i64(1) << (8 * size)))
      for (i64 i = 0; i < count(); ++i)
        if (i64((*this)[i]) >= vocabulary)
          fail(errc::data, "token ", i, " of data file '", path_, "' is ", (*this)[i], " (at byte ", i * i64(size),
               "), expected 0 to ", vocabulary - 1, ": use the model's own vocabulary");
    if (format_ == token_format::uint32)
      for (i64 i = 0; i < count(); ++i)
        if ((*this)[i] > 0x7FFFFFFFu) fail(errc::data, "token ", i, " of data file '", path_, "' is above 2^31 - 1");
    digest_ = XXH3_64bits_withSeed(bytes_.data(), bytes_.size(), u64(format_));
  }

  const std::string& path() const { return path_; }
  token_format format() const { return format_; }
  i64 vocabulary() const { return vocabulary_; }
  i64 count() const { return i64(bytes_.size() / std::size_t(format_)); }
  i64 byte_count() const { return i64(bytes_.size()); }
  u32 operator[](i64 i) const {
    const unsigned char* p = bytes_.data() + i * i64(format_);
    switch (format_) {
      case token_format::bytes: return p[0];
      case token_format::uint16: return u32(p[0]) | u32(p[1]) << 8;
      case token_format::uint32: return u32(p[0]) | u32(p[1]) << 8 | u32(p[2]) << 16 | u32(p[3]) << 24;
    }
    return 0;
  }
  /// XXH3 of content and format.
  u64 digest() const { return digest_; }

 private:
  std::string path_;
  token_format format_;
  i64 vocabulary_;
  std::vector<unsigned char> bytes_;
  u64 digest_ = 0;
};

}  // namespace fusionllm::inline v0
