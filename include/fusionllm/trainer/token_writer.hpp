// SPDX-License-Identifier: Apache-2.0
// Writes a token file of any length in constant memory. It appears under its name only when it is whole and on the
// disk; a writer that ends before removes what it wrote.
#pragma once

#include <memory>
#include <vector>

#include "data_file.hpp"
#include "token_header.hpp"

namespace fusionllm::inline v0 {

class token_writer {
 public:
  /// Errors of all members: errc::resource when the disk is full, errc::data otherwise. A file of that name stays as it
  /// is until `finish`.
  token_writer(std::string path, i64 vocabulary, u64 tokenizer) : path_(std::move(path)), part_(path_ + ".part") {
    if (vocabulary < 1 || u64(vocabulary) > detail::largest_vocabulary)
      fail(errc::data, "a vocabulary of ", vocabulary, ", expected 1 to ", detail::largest_vocabulary);
    info_.width = token_width(u64(vocabulary));
    info_.vocabulary = u64(vocabulary);
    info_.tokenizer = tokenizer;
    file_ = detail::descriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file_.get() < 0) broken("create", errno);
    XXH3_64bits_reset(&content_);
    buffer_.reserve(buffer_bytes);
    write(detail::token_header().data(), detail::token_header_bytes);  // zeros, until the rest is there
  }
  ~token_writer() {
    if (file_.get() >= 0) ::unlink(part_.c_str());
  }
  token_writer(const token_writer&) = delete;
  token_writer& operator=(const token_writer&) = delete;

  /// Appends a token, which must be below the vocabulary (errc::data).
  void add(u32 token) {
    if (token >= info_.vocabulary)
      fail(errc::data, "token ", info_.count, " is ", token, ", expected 0 to ", info_.vocabulary - 1);
    if (buffer_.size() + 4 > buffer_bytes) flush();
    for (u32 i = 0; i < info_.width; ++i) buffer_.push_back(static_cast<char>(token >> (8 * i)));
    ++info_.count;
  }
  u64 count() const { return info_.count; }

  /// Makes the file whole, durable and visible, in this order.
  token_file_info finish() {
    flush();
    info_.content = XXH3_64bits_digest(&content_);
    const auto header = detail::header_of(info_);
    if (::pwrite(file_.get(), header.data(), detail::token_header_bytes, 0) != ssize_t(detail::token_header_bytes))
      broken("write", errno);
    if (::fsync(file_.get()) != 0) broken("write", errno);
    if (::rename(part_.c_str(), path_.c_str()) != 0) broken("rename", errno);
    file_ = detail::descriptor();
    return info_;
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t(1) << 20;

  void flush() {
    XXH3_64bits_update(&content_, buffer_.data(), buffer_.size());
    write(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  void write(const char* p, std::size_t size) {
    while (size > 0) {
      const auto n = ::write(file_.get(), p, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) broken("write", n < 0 ? errno : ENOSPC);
      p += n;
      size -= std::size_t(n);
    }
  }
  [[noreturn]] void broken(const char* what, int why) const {
    if (file_.get() >= 0) ::unlink(part_.c_str());
    const bool full = why == ENOSPC || why == EDQUOT || why == EFBIG;
    fail(full ? errc::resource : errc::data, "cannot ", what, " token file '", path_, "' after ", info_.count,
         " tokens: ", std::strerror(why), full ? ": free some space, or write elsewhere" : ": check the path");
  }

  std::string path_, part_;
  token_file_info info_;
  detail::descriptor file_;
  std::vector<char> buffer_;
  XXH3_state_t content_;
};

}  // namespace fusionllm::inline v0
