// SPDX-License-Identifier: Apache-2.0
// A short name as a value, usable in constant expressions and equal on every compiler.
#pragma once

#include <string_view>

#include "types.hpp"

namespace fusionllm::inline v0 {

/// Up to 63 characters. A longer one does not compile (or throws at run time).
struct name {
  static constexpr int capacity = 63;
  char text[capacity + 1] = {};
  u8 length = 0;

  constexpr name() = default;
  constexpr name(std::string_view s) { put(s); }
  constexpr name(const char* s) : name(std::string_view(s)) {}

  constexpr void put(char c) {
    if (length == capacity) throw "a scoped name is longer than 63 characters: shorten the scopes";
    text[length++] = c;
  }
  constexpr void put(std::string_view s) {
    if (s.size() > std::size_t(capacity - length)) throw "a scoped name is longer than 63 characters: shorten the scopes";
    for (char c : s) text[length++] = c;
  }
  constexpr void put_number(unsigned n) {
    if (n >= 10) put_number(n / 10);
    put(char('0' + n % 10));
  }
  constexpr void shorten(u8 to) {
    while (length > to) text[--length] = 0;
  }
  constexpr std::string_view view() const { return {text, length}; }
  constexpr bool operator==(const name& o) const { return view() == o.view(); }
};

}  // namespace fusionllm::inline v0
