// SPDX-License-Identifier: Apache-2.0
// Byte-level byte pair encoding, as GPT-2's: text to token ids and back. Ids are those of tiktoken's `gpt2` for every
// well-formed UTF-8 text, and decode(encode(x)) == x for all bytes: what is no UTF-8 is kept byte for byte (tiktoken
// would put U+FFFD in its place).
#pragma once

#include <memory>

#include "bpe_files.hpp"
#include "bpe_merge.hpp"
#include "bpe_pieces.hpp"

namespace fusionllm::inline v0 {

/// What the text of a special token, such as <|endoftext|>, is where it comes in a text.
enum class special_text : u8 {
  ordinary,  ///< text like other
  token      ///< that token
};

class bpe_tokenizer {
 public:
  /// Errors: errc::data.
  explicit bpe_tokenizer(const std::string& path) : bpe_tokenizer(read_bpe_vocabulary(path)) {}
  explicit bpe_tokenizer(bpe_vocabulary v) : vocabulary_(std::make_shared<const bpe_vocabulary>(std::move(v))) {}

  /// Ids are 0 to vocabulary() - 1.
  i64 vocabulary() const { return vocabulary_->size(); }
  /// The same for the same vocabulary, whatever files it came from.
  u64 identity() const { return vocabulary_->identity(); }
  const bpe_vocabulary& tokens() const { return *vocabulary_; }

  /// Calls `sink(id)` for every token of `text`, in order. Time is near linear in the length of the text, memory in
  /// that of its longest word. Safe to call from several threads.
  template <class Sink>
  void encode(std::string_view text, special_text special, Sink&& sink) const {
    detail::bpe_merger merge(*vocabulary_, text.size() >= 1 << 16);
    if (special == special_text::ordinary) return encode_ordinary(merge, text, sink);
    special_finder find(vocabulary_->special(), text);
    std::size_t at = 0;
    while (const auto* next = find.from(at)) {
      encode_ordinary(merge, text.substr(at, next->at - at), sink);
      sink(next->id);
      at = next->at + next->text.size();
    }
    encode_ordinary(merge, text.substr(at), sink);
  }
  std::vector<u32> encode(std::string_view text, special_text special = special_text::ordinary) const {
    std::vector<u32> ids;
    encode(text, special, [&](u32 id) { ids.push_back(id); });
    return ids;
  }

  /// The bytes of a token. Errors: errc::data for an id outside the vocabulary.
  std::string_view bytes(i64 id) const {
    if (id < 0 || id >= vocabulary())
      fail(errc::data, "token ", id, ", expected 0 to ", vocabulary() - 1, " (the tokenizer's)");
    return vocabulary_->bytes(u32(id));
  }
  template <class Ids>
  std::string decode(const Ids& ids) const {
    std::string text;
    for (const auto id : ids) text += bytes(i64(id));
    return text;
  }

 private:
  /// Finds special tokens from left to right, of two at one place the longer.
  class special_finder {
   public:
    struct place {
      std::string_view text;
      u32 id = 0;
      std::size_t at = 0;  ///< npos: it does not come again
    };
    special_finder(const std::vector<bpe_vocabulary::special_token>& all, std::string_view text) : text_(text) {
      for (const auto& t : all) places_.push_back({t.text, t.id, text.find(t.text)});
    }
    const place* from(std::size_t begin) {
      const place* first = nullptr;
      for (place& p : places_) {
        if (p.at != std::string_view::npos && p.at < begin) p.at = text_.find(p.text, begin);
        if (p.at == std::string_view::npos) continue;
        if (!first || p.at < first->at || (p.at == first->at && p.text.size() > first->text.size())) first = &p;
      }
      return first;
    }

   private:
    std::string_view text_;
    std::vector<place> places_;
  };

  template <class Sink>
  static void encode_ordinary(detail::bpe_merger& merge, std::string_view text, Sink& sink) {
    while (!text.empty()) {
      const std::size_t n = first_piece(text);
      for (const u32 id : merge(text.substr(0, n))) sink(id);
      text.remove_prefix(n);
    }
  }

  std::shared_ptr<const bpe_vocabulary> vocabulary_;
};

/// Decodes token by token, so that text can be shown while it grows: a character comes when all its bytes are there.
/// Bytes that begin no character are given as they are.
class bpe_stream {
 public:
  explicit bpe_stream(const bpe_tokenizer& t) : tokenizer_(t) {}

  /// What `id` completes. Errors: errc::data.
  std::string add(i64 id) {
    held_ += tokenizer_.bytes(id);
    std::size_t whole = held_.size();
    for (std::size_t back = 1; back <= 3 && back <= held_.size(); ++back)
      if (may_grow(std::string_view(held_).substr(held_.size() - back))) whole = held_.size() - back;
    std::string text = held_.substr(0, whole);
    held_.erase(0, whole);
    return text;
  }
  /// What is left at the end: the beginning of a character, or nothing.
  std::string finish() { return std::exchange(held_, {}); }

 private:
  /// Whether more bytes can make one character of these.
  static bool may_grow(std::string_view s) {
    const auto lead = static_cast<unsigned char>(s[0]);
    const std::size_t n = lead >= 0xC2 && lead < 0xE0   ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    if (s.size() >= n) return false;
    for (const char low : {'\x80', '\x90', '\xA0'}) {  // some continuation makes it well-formed
      std::string grown(s);
      while (grown.size() < n) grown += grown.size() == 1 ? low : '\x80';
      if (detail::utf8_length(grown) == n) return true;
    }
    return false;
  }

  bpe_tokenizer tokenizer_;
  std::string held_;
};

}  // namespace fusionllm::inline v0
