// SPDX-License-Identifier: Apache-2.0
// Writes a token file of any length in constant memory: a whole file, or none.
#pragma once

#include <vector>

#include "token_header.hpp"
#include "whole_file.hpp"

namespace fusionllm::inline v0 {

class token_writer {
 public:
  /// Errors of all members: errc::resource when the disk is full, errc::data otherwise. A file of that name stays as it
  /// is until `finish`.
  token_writer(std::string path, i64 vocabulary, u64 tokenizer)
      : info_(info_for(vocabulary, tokenizer)), file_(std::move(path), errc::data, "token file") {
    XXH3_64bits_reset(&content_);
    buffer_.reserve(buffer_bytes);
    file_.write(detail::token_header().data(), detail::token_header_bytes);  // zeros, until the rest is there
  }

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
    file_.rewrite_beginning(std::as_bytes(std::span(header.data(), detail::token_header_bytes)));
    file_.finish();
    return info_;
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t(1) << 20;

  static token_file_info info_for(i64 vocabulary, u64 tokenizer) {
    if (vocabulary < 1 || u64(vocabulary) > detail::largest_vocabulary)
      fail(errc::data, "a vocabulary of ", vocabulary, ", expected 1 to ", detail::largest_vocabulary);
    token_file_info i;
    i.width = token_width(u64(vocabulary));
    i.vocabulary = u64(vocabulary);
    i.tokenizer = tokenizer;
    return i;
  }

  void flush() {
    XXH3_64bits_update(&content_, buffer_.data(), buffer_.size());
    file_.write(buffer_.data(), buffer_.size());
    buffer_.clear();
  }

  token_file_info info_;
  whole_file file_;
  std::vector<char> buffer_;
  XXH3_state_t content_;
};

}  // namespace fusionllm::inline v0
