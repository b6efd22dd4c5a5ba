// SPDX-License-Identifier: Apache-2.0
// A token file as `tokenize` writes it, mapped: it may be larger than memory, and only what is read is loaded. Up to 1
// GiB is checked as a whole when it is opened; of a larger one each token is checked when it is read.
#pragma once

#include <algorithm>

#include "mapped_file.hpp"
#include "token_header.hpp"

namespace fusionllm::inline v0 {

class mapped_token_file {
 public:
  /// `vocabulary` is the model's. Errors: errc::data: missing, cut off, damaged, of a larger vocabulary than the
  /// model's, a token outside its vocabulary (with its position).
  explicit mapped_token_file(std::string path, i64 vocabulary = i64(1) << 31)
      : path_(std::move(path)),
        file_(path_, errc::data, "token file"),
        info_(
            detail::read_token_header(file_.text().substr(0, detail::token_header_bytes), file_.text().size(), path_)) {
    if (i64(info_.vocabulary) > vocabulary)
      fail(errc::data, "token file '", path_, "' is of a vocabulary of ", info_.vocabulary, " tokens, the model knows ",
           vocabulary, ": use a model with as many, or tokenize the text with the model's own tokenizer");
    if (info_.count * info_.width <= checked_whole)
      check_whole();
    else
      file_.read_anywhere();
  }

  const std::string& path() const { return path_; }
  const token_file_info& info() const { return info_; }
  token_format format() const { return info_.width == 2 ? token_format::uint16 : token_format::uint32; }
  i64 vocabulary() const { return i64(info_.vocabulary); }
  i64 count() const { return i64(info_.count); }
  i64 byte_count() const { return i64(info_.count * info_.width); }
  /// Errors: errc::data when the token is outside the vocabulary.
  u32 operator[](i64 i) const {
    const u32 token = at(i);
    if (token >= info_.vocabulary) outside(i, token);
    return token;
  }
  /// Of content, vocabulary and tokenizer.
  u64 digest() const {
    const u64 all[] = {info_.content, info_.vocabulary, info_.tokenizer, info_.count};
    return XXH3_64bits(all, sizeof all);
  }

 private:
  static constexpr u64 checked_whole = u64(1) << 30;

  const unsigned char* tokens() const {
    return reinterpret_cast<const unsigned char*>(file_.bytes().data()) + detail::token_header_bytes;
  }
  u32 at(i64 i) const {
    const unsigned char* p = tokens() + i * i64(info_.width);
    const u32 low = u32(p[0]) | u32(p[1]) << 8;
    return info_.width == 2 ? low : low | u32(p[2]) << 16 | u32(p[3]) << 24;
  }
  void check_whole() const {
    for (i64 i = 0; i < count(); ++i)
      if (at(i) >= info_.vocabulary) outside(i, at(i));
    if (XXH3_64bits(tokens(), std::size_t(byte_count())) != info_.content)
      fail(errc::data, "token file '", path_,
           "' is damaged: its content does not fit its checksum; copy it again, or write it anew "
           "with `tokenize`");
  }
  [[noreturn]] void outside(i64 i, u32 token) const {
    fail(errc::data, "token ", i, " of token file '", path_, "' is ", token, " (at byte ",
         i64(detail::token_header_bytes) + i * i64(info_.width), "), expected 0 to ", info_.vocabulary - 1,
         ": the file is damaged; copy it again, or write it anew with `tokenize`");
  }

  std::string path_;
  mapped_file file_;
  token_file_info info_;
};

/// Whether the file at `path` begins as a token file does. False where it cannot be read.
inline bool is_token_file(const std::string& path) {
  const detail::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  char begin[8] = {};
  return ::pread(file.get(), begin, 8, 0) == 8 && std::memcmp(begin, detail::token_magic, 8) == 0;
}

}  // namespace fusionllm::inline v0
