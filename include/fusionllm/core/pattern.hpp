// SPDX-License-Identifier: Apache-2.0
// Patterns of names, as options and tables have them: '*' is any text, also none, '?' any one character.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fusionllm::inline v0 {

/// Whether the whole of `text` fits `pattern`. What each star stands for, as little as possible from the left on, is written
/// to `stars` as long as there is room. Time: the product of both lengths at most.
constexpr bool fits_pattern(std::string_view pattern, std::string_view text, std::span<std::string_view> stars = {}) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t p = 0, t = 0;
  std::size_t after = none, begin = 0, end = 0, seen = 0;  // of the last star: the pattern behind it, its text
  const auto keep = [&] {
    if (seen <= stars.size()) stars[seen - 1] = text.substr(begin, end - begin);
  };
  while (t < text.size() || (p < pattern.size() && pattern[p] == '*')) {
    if (p < pattern.size() && pattern[p] == '*') {
      after = ++p;
      begin = end = t;
      ++seen;
      keep();
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (after != none) {  // only the last star has to give: those before it would leave the rest less
      p = after;
      t = ++end;
      keep();
    } else return false;
  }
  return p == pattern.size();
}

}  // namespace fusionllm::inline v0
