// SPDX-License-Identifier: Apache-2.0
// How GPT-2's vocabulary files write bytes: each byte is a printable character, its own where Latin-1 has one, else the
// next from U+0100 on. ("Language Models are Unsupervised Multitask Learners", 2019, section 2.2.)
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

namespace detail {

constexpr bool is_own_symbol(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// The code point that stands for each byte; all are below 0x800, two bytes of UTF-8 at most.
constexpr std::array<u16, 256> make_byte_symbols() {
  std::array<u16, 256> symbols{};
  u16 next = 0x100;
  for (int b = 0; b < 256; ++b) symbols[std::size_t(b)] = is_own_symbol(b) ? u16(b) : next++;
  return symbols;
}
inline constexpr std::array<u16, 256> byte_symbols = make_byte_symbols();

/// The inverse, for code points below 0x144; -1: stands for no byte.
constexpr std::array<std::int16_t, 0x144> make_symbol_bytes() {
  std::array<std::int16_t, 0x144> bytes{};
  bytes.fill(-1);
  for (int b = 0; b < 256; ++b) bytes[byte_symbols[std::size_t(b)]] = std::int16_t(b);
  return bytes;
}
inline constexpr auto symbol_bytes = make_symbol_bytes();

}  // namespace detail

/// Bytes as vocabulary files write them.
inline std::string symbols_of(std::string_view bytes) {
  std::string text;
  for (char c : bytes) {
    const u16 symbol = detail::byte_symbols[static_cast<unsigned char>(c)];
    if (symbol < 0x80) {
      text += static_cast<char>(symbol);
    } else {
      text += static_cast<char>(0xC0 | symbol >> 6);
      text += static_cast<char>(0x80 | (symbol & 0x3F));
    }
  }
  return text;
}

/// The bytes that such a text stands for, into `bytes`; false: it holds a character that stands for none.
inline bool bytes_of_symbols(std::string_view text, std::string& bytes) {
  bytes.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    u32 symbol = static_cast<unsigned char>(text[i]);
    if (symbol >= 0x80) {
      if (symbol < 0xC2 || symbol > 0xDF || i + 1 == text.size()) return false;
      const u32 low = static_cast<unsigned char>(text[++i]);
      if ((low & 0xC0) != 0x80) return false;
      symbol = (symbol & 0x1F) << 6 | (low & 0x3F);
    }
    if (symbol >= detail::symbol_bytes.size() || detail::symbol_bytes[symbol] < 0) return false;
    bytes += static_cast<char>(detail::symbol_bytes[symbol]);
  }
  return true;
}

}  // namespace fusionllm::inline v0
