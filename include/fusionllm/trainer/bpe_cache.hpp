// SPDX-License-Identifier: Apache-2.0
// The tokens of short words that came lately: a text repeats few words, and finding one is a fraction of joining it.
// One word a place, the later wins; what is found is what joining would give.
#pragma once

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

namespace detail {

class bpe_cache {
 public:
  static constexpr std::size_t longest = 15;

  /// The place of a word of 1 to `longest` bytes. It holds that word's tokens, or another's until `put`.
  class place;
  place find(std::string_view word);

 private:
  static constexpr std::size_t most_tokens = 4;
  static constexpr u32 none = ~u32(0);
  struct entry {
    u64 word[2] = {0, 0};  ///< bytes, zeros, and the length last
    u32 tokens[most_tokens] = {none, none, none, none};
  };
  std::vector<entry> entries_ = std::vector<entry>(std::size_t(1) << 13);
};

class bpe_cache::place {
 public:
  bool hit() const { return at_.word[0] == word_[0] && at_.word[1] == word_[1]; }
  std::span<const u32> tokens() const {
    std::size_t n = 1;
    while (n < most_tokens && at_.tokens[n] != none) ++n;
    return {at_.tokens, n};
  }
  /// Keeps the tokens of the word, if they are few.
  void put(std::span<const u32> tokens) {
    if (tokens.size() > most_tokens) return;
    at_.word[0] = word_[0], at_.word[1] = word_[1];
    for (std::size_t i = 0; i < most_tokens; ++i) at_.tokens[i] = i < tokens.size() ? tokens[i] : none;
  }

 private:
  friend class bpe_cache;
  place(entry& at, const u64 (&word)[2]) : at_(at), word_{word[0], word[1]} {}
  entry& at_;
  u64 word_[2];
};

inline bpe_cache::place bpe_cache::find(std::string_view word) {
  char bytes[16] = {};
  std::memcpy(bytes, word.data(), word.size());
  bytes[15] = static_cast<char>(word.size());
  u64 key[2];
  std::memcpy(key, bytes, 16);
  u64 h = (key[0] ^ key[1] * 0xC2B2AE3D27D4EB4Fu) * 0x9E3779B97F4A7C15u;
  h ^= h >> 32;
  return {entries_[std::size_t(h * 0x9E3779B97F4A7C15u >> 51)], key};
}

}  // namespace detail

}  // namespace fusionllm::inline v0
