// SPDX-License-Identifier: Apache-2.0
// Cuts text into the pieces that merges never cross, as GPT-2's regular expression does:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Every byte belongs to one piece. A byte that is no part of well-formed UTF-8 (a surrogate's three bytes neither)
// counts as a character of its own that is no letter, number or space, so that any file can be cut and put together
// again.
#pragma once

#include <algorithm>
#include <string_view>

#include "bpe_unicode_ranges.hpp"
#include "json_text.hpp"

namespace fusionllm::inline v0 {

namespace detail {

enum class character_class : u8 { other, letter, number, space };

constexpr character_class class_of_code_point(u32 point) {
  const u32* end = std::upper_bound(std::begin(unicode_ranges), std::end(unicode_ranges), point * 4 + 3);
  return character_class(*(end - 1) & 3);
}

struct ascii_classes {
  character_class of[128];
  constexpr ascii_classes() : of() {
    for (u32 c = 0; c < 128; ++c) of[c] = class_of_code_point(c);
  }
};
inline constexpr ascii_classes ascii{};

struct character {
  character_class kind = character_class::other;
  std::size_t bytes = 1;
};

/// The first character of a text that is not empty.
constexpr character first_character(std::string_view s) {
  const auto byte = [&](std::size_t i) { return u32(static_cast<unsigned char>(s[i])); };
  const u32 b = byte(0);
  if (b < 0x80) return {ascii.of[b], 1};
  switch (utf8_length(s)) {
    case 2:
      return {class_of_code_point((b & 0x1F) << 6 | (byte(1) & 0x3F)), 2};
    case 3:
      return {class_of_code_point((b & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)), 3};
    case 4:
      return {class_of_code_point((b & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F)),
              4};
    default:
      return {};
  }
}

/// Bytes of 's, 't, 're, 've, 'm, 'll or 'd at the start of `s`; 0: none is there.
constexpr std::size_t contraction(std::string_view s) {
  if (s.size() < 2 || s[0] != '\'') return 0;
  const char a = s[1], b = s.size() > 2 ? s[2] : '\0';
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/// Where the run of characters of `kind` that begins before `at` ends.
constexpr std::size_t end_of_run(std::string_view s, std::size_t at, character_class kind) {
  while (at < s.size()) {
    const character c = first_character(s.substr(at));
    if (c.kind != kind) break;
    at += c.bytes;
  }
  return at;
}

/// White space leaves its last character to what follows, if it has another.
constexpr std::size_t end_of_space(std::string_view s, std::size_t first) {
  std::size_t last = 0, at = first;
  while (at < s.size()) {
    const character c = first_character(s.substr(at));
    if (c.kind != character_class::space) return last > 0 ? last : at;
    last = at;
    at += c.bytes;
  }
  return at;
}

}  // namespace detail

/// Bytes of the first piece of `s`, which must not be empty.
constexpr std::size_t first_piece(std::string_view s) {
  if (const std::size_t n = detail::contraction(s)) return n;
  const detail::character first = detail::first_character(s);
  if (first.kind != detail::character_class::space) return detail::end_of_run(s, first.bytes, first.kind);
  if (s[0] == ' ' && s.size() > 1) {
    const detail::character next = detail::first_character(s.substr(1));
    if (next.kind != detail::character_class::space) return detail::end_of_run(s, 1 + next.bytes, next.kind);
  }
  return detail::end_of_space(s, first.bytes);
}

}  // namespace fusionllm::inline v0
