// SPDX-License-Identifier: Apache-2.0
// FNV-1a over names and numbers (Fowler, Noll, Vo): constexpr, and the same on every compiler and machine.
#pragma once

#include <string_view>

#include "types.hpp"

namespace fusionllm::inline v0 {

class fnv {
 public:
  constexpr fnv& byte(u8 b) {
    hash_ = (hash_ ^ b) * 1099511628211ull;
    return *this;
  }
  constexpr fnv& number(u64 v) {
    for (int i = 0; i < 8; ++i) byte(u8(v >> (8 * i)));
    return *this;
  }
  constexpr fnv& text(std::string_view s) {
    for (char c : s) byte(u8(c));
    return number(s.size());
  }
  constexpr u64 value() const { return hash_; }

 private:
  u64 hash_ = 14695981039346656037ull;
};

}  // namespace fusionllm::inline v0
