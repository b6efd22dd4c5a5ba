// SPDX-License-Identifier: Apache-2.0
// A checked vocabulary: ids 0 to size - 1, each with its bytes; one token for every single byte, so that everything can
// be encoded; merges in order of rank, whose parts and results are tokens. Nothing is taken from a file unchecked.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/xxh3.hpp"
#include "../transport/hello.hpp"
#include "bpe_merge_table.hpp"
#include "bpe_symbols.hpp"

namespace fusionllm::inline v0 {

/// A vocabulary as files give it.
struct bpe_source {
  std::string tokens_file, merges_file;                     ///< for messages
  std::vector<std::pair<std::string, i64>> tokens;          ///< in symbols (bpe_symbols.hpp), with ids
  std::vector<std::pair<std::string, std::string>> merges;  ///< in symbols, the earliest first
  std::vector<std::pair<std::string, i64>> special;         ///< in plain text, with ids
  const char* merge_word = "line ";                         ///< for messages, with
  i64 first_merge = 1;                                      ///< the number of the first
  i64 most_unmade = INT64_MAX;                              ///< tokens that may lack a merge
};

class bpe_vocabulary {
 public:
  struct special_token {
    std::string text;
    u32 id = 0;
  };

  /// Errors: errc::data, naming file, token or line, what was found and what is expected.
  explicit bpe_vocabulary(const bpe_source& s) : merges_(s.merges.size()) {
    take_tokens(s);
    for (int b = 0; b < 256; ++b) take_byte(s, b);
    for (std::size_t i = 0; i < s.merges.size(); ++i) take_merge(s, i);
    expect_made(s);
    ids_ = {};
    kinds_ = {};
    digest_ = digest();
  }

  i64 size() const { return i64(tokens_.size()); }
  /// The bytes of a token, for id < size().
  const std::string& bytes(u32 id) const { return tokens_[id]; }
  u32 of_byte(unsigned char b) const { return bytes_[b]; }
  const merge_table& merges() const { return merges_; }
  const std::vector<special_token>& special() const { return special_; }
  /// XXH3 of ids, bytes and merges: the same for one vocabulary in either form of file.
  u64 identity() const { return digest_; }

 private:
  enum class kind : char { absent, ordinary, special };
  static constexpr i64 most_tokens = i64(1) << 24;
  static constexpr std::size_t most_special = 4096;

  void take_tokens(const bpe_source& s) {
    ids_.reserve(s.tokens.size());
    for (const auto& [text, id] : s.tokens)
      if (!ids_.emplace(text, u32(id)).second)
        refuse(s.tokens_file, "token '", shown(text), "' comes twice: leave one");
    std::size_t more = 0;
    for (const auto& [text, id] : s.special) {
      const auto at = ids_.find(text);
      if (at == ids_.end())
        ++more;
      else if (i64(at->second) != id)
        refuse(s.tokens_file, "special token '", shown(text), "' has id ", id, " and id ", at->second, ": leave one");
    }
    const i64 count = i64(s.tokens.size() + more);
    if (count < 256 || count > most_tokens)
      refuse(s.tokens_file, "it has ", count, " tokens, expected 256 (one for each byte) to ", most_tokens,
             ": it is no byte-level vocabulary");
    tokens_.resize(std::size_t(count));
    kinds_.resize(std::size_t(count), kind::absent);
    if (s.special.size() > most_special)
      refuse(s.tokens_file, "it has ", s.special.size(), " special tokens, expected ", most_special, " at most");
    for (const auto& [text, id] : s.special) {
      if (text.empty()) refuse(s.tokens_file, "special token ", id, " is empty");
      special_.push_back({text, place(s, text, id, kind::special)});
      tokens_[std::size_t(id)] = text;
    }
    for (const auto& [text, id] : s.tokens) {
      if (id >= 0 && id < count && kinds_[std::size_t(id)] == kind::special && tokens_[std::size_t(id)] == text)
        continue;
      std::string& bytes = tokens_[place(s, text, id, kind::ordinary)];
      if (!bytes_of_symbols(text, bytes) || bytes.empty())
        refuse(s.tokens_file, "token '", shown(text), "' (id ", id, ") is ",
               text.empty() ? "empty" : "not written in byte symbols", ": it is no byte-level vocabulary as GPT-2's");
    }
  }
  u32 place(const bpe_source& s, const std::string& text, i64 id, kind k) {
    if (id < 0 || id >= size())
      refuse(s.tokens_file, "token '", shown(text), "' has id ", id, ", expected 0 to ", size() - 1, " (there are ",
             size(), " tokens)");
    if (std::exchange(kinds_[std::size_t(id)], k) != kind::absent)
      refuse(s.tokens_file, "token '", shown(text), "' has id ", id,
             ", which another token has too: give each its own");
    return u32(id);
  }

  void take_byte(const bpe_source& s, int b) {
    const char c = static_cast<char>(b);
    const std::string symbol = symbols_of({&c, 1});
    const auto at = ids_.find(symbol);
    if (at == ids_.end())
      refuse(s.tokens_file, "it has no token '", symbol, "' for byte ", b, ": a byte-level vocabulary has all 256");
    bytes_[std::size_t(b)] = at->second;
  }

  void take_merge(const bpe_source& s, std::size_t i) {
    const std::string &left = s.merges[i].first, &right = s.merges[i].second;
    const auto wrong = [&](const auto&... parts) {
      refuse(s.merges_file, s.merge_word, s.first_merge + i64(i), " joins '", shown(left), "' and '", shown(right),
             "', ", parts...);
    };
    const auto id = [&](const std::string& text, const char* what) {
      const auto at = ids_.find(text);
      if (at == ids_.end() || kinds_[at->second] != kind::ordinary)
        wrong(what, " is no token of '", s.tokens_file, "': take both from one vocabulary");
      return at->second;
    };
    const u32 l = id(left, "the first of which"), r = id(right, "the second of which");
    if (!merges_.add({l, r, id(left + right, "whose join")})) wrong("as one before it does: leave one");
  }

  /// A file of merges that is cut off leaves many tokens that none makes.
  void expect_made(const bpe_source& s) {
    i64 unmade = size() - 256 - i64(special_.size());
    for (u32 i = 0; i < merges_.size(); ++i)
      if (std::exchange(kinds_[merges_[i].result], kind::absent) != kind::absent) --unmade;
    if (unmade > s.most_unmade)
      refuse(s.merges_file, "none of its ", merges_.size(), " merges makes ", unmade, " of the ", size(),
             " tokens of '", s.tokens_file, "', expected ", s.most_unmade,
             " such tokens at most: it is cut off, or of another vocabulary");
  }

  u64 digest() const {
    std::string all;
    const auto number = [&](u32 x) {
      for (int i = 0; i < 4; ++i) all += static_cast<char>(x >> (8 * i));
    };
    for (const auto& t : tokens_) number(u32(t.size())), all += t;
    for (u32 i = 0; i < merges_.size(); ++i)
      number(merges_[i].left), number(merges_[i].right), number(merges_[i].result);
    return XXH3_64bits(all.data(), all.size());
  }

  static std::string shown(const std::string& text) { return printable(text, 40); }
  template <class... Parts>
  [[noreturn]] static void refuse(const std::string& file, const Parts&... parts) {
    fail(errc::data, "vocabulary '", file, "': ", parts...);
  }

  std::vector<std::string> tokens_;
  std::array<u32, 256> bytes_{};
  merge_table merges_;
  std::vector<special_token> special_;
  std::unordered_map<std::string, u32> ids_;  ///< of written tokens, while reading, as
  std::vector<kind> kinds_;                   ///< these by id
  u64 digest_ = 0;
};

}  // namespace fusionllm::inline v0
