// SPDX-License-Identifier: Apache-2.0
// How the k positions of a frame, ascending, out of n, are written. The size depends on n and k alone, so that the
// planner's price of a frame is exact.
//   bitmap      one bit an entry
//   elias_fano  the low bits of each position as they are, the high ones in unary (Elias 1974, Fano 1971): about
//               2 + log2(n / k) bits a position, within half a bit of the least possible
// Elias-Fano is the smaller one below a density of 1/4.
#pragma once

#include <bit>
#include <cstring>
#include <span>

#include "../core/bytes.hpp"

namespace fusionllm::inline v0 {

enum class position_coding : u8 { dense = 0, bitmap = 1, elias_fano = 2 };

namespace detail {

/// Low bits a position: floor(log2(n / k)), the best choice.
constexpr int low_bits(i64 n, i64 k) { return k <= 0 ? 0 : int(std::bit_width(u64(n / k))) - 1; }
constexpr i64 low_bytes(i64 n, i64 k) { return (k * low_bits(n, k) + 7) / 8; }
constexpr i64 high_bits(i64 n, i64 k) { return k + ((n - 1) >> low_bits(n, k)); }

}  // namespace detail

constexpr i64 position_bytes(position_coding coding, i64 n, i64 k) {
  if (coding == position_coding::bitmap) return (n + 7) / 8;
  if (coding == position_coding::dense || k == 0) return 0;
  return detail::low_bytes(n, k) + (detail::high_bits(n, k) + 7) / 8;
}

/// The smallest coding. For k = 0 it is an empty Elias-Fano list.
constexpr position_coding best_position_coding(i64 n, i64 k) {
  if (k == n) return position_coding::dense;
  const bool smaller =
      position_bytes(position_coding::elias_fano, n, k) < position_bytes(position_coding::bitmap, n, k);
  return smaller ? position_coding::elias_fano : position_coding::bitmap;
}

namespace detail {

/// Writes `bytes` bytes in which the k bits at rising places `place(0)`, `place(1)`, ... are set, a 64-bit word at a
/// time.
template <class Place>
void write_bits(std::byte* out, i64 bytes, i64 k, Place&& place) {
  i64 i = 0, next = k > 0 ? place(0) : 0;
  for (i64 word = 0; word * 8 < bytes; ++word) {
    u64 bits = 0;
    while (i < k && next >> 6 == word) {
      bits |= u64(1) << (next & 63);
      if (++i < k) next = place(i);
    }
    if (bytes - word * 8 >= 8) {  // a copy of known size is one store
      std::memcpy(out + word * 8, &bits, 8);
    } else {
      std::memcpy(out + word * 8, &bits, std::size_t(bytes - word * 8));
    }
  }
}

/// The 64-bit word that begins at byte 8 * word, zero where it lies beyond the end.
inline u64 load_word(const std::byte* in, i64 bytes, i64 word) {
  u64 bits = 0;
  const i64 left = bytes - word * 8;
  if (left >= 8) {
    std::memcpy(&bits, in + word * 8, 8);
  } else if (left > 0) {
    std::memcpy(&bits, in + word * 8, std::size_t(left));
  }
  return bits;
}

[[noreturn]] inline void bad_positions(const char* what) {
  fail(errc::protocol, "the positions of a frame ", what, ": the frame is damaged");
}

inline void write_elias_fano(std::span<const u32> positions, i64 n, std::byte* out) {
  const i64 k = i64(positions.size());
  const int low = low_bits(n, k);
  const i64 lows = low_bytes(n, k);
  u64 pending = 0;
  int filled = 0;
  std::byte* to = out;
  if (low > 0)
    for (u32 p : positions) {
      pending |= u64(p & ((u32(1) << low) - 1)) << filled;
      filled += low;
      if (filled < 32) continue;
      store_little(to, u32(pending));
      to += 4;
      pending >>= 32;
      filled -= 32;
    }
  for (; to < out + lows; ++to, pending >>= 8) *to = std::byte(u8(pending));
  write_bits(out + lows, (high_bits(n, k) + 7) / 8, k,
             [&](i64 i) { return i64(positions[std::size_t(i)] >> low) + i; });
}

inline void read_elias_fano(const std::byte* in, i64 n, i64 k, u32* positions) {
  const int low = low_bits(n, k);
  const i64 lows = low_bytes(n, k), highs = (high_bits(n, k) + 7) / 8;
  i64 found = 0;
  for (i64 word = 0; word * 8 < highs; ++word)
    for (u64 bits = load_word(in + lows, highs, word); bits != 0; bits &= bits - 1) {
      if (found == k) bad_positions("are more than its count");
      const i64 part = word * 64 + std::countr_zero(bits) - found;
      if (part > (n - 1) >> low) bad_positions("lie outside the tensor");
      positions[found++] = u32(part << low);
    }
  if (found != k) bad_positions("are fewer than its count");
  if (low > 0) {
    u64 pending = 0;
    int filled = 0;
    const std::byte* from = in;
    for (i64 i = 0; i < k; ++i) {
      while (filled < low) {  // whole words while there are any, then bytes
        if (in + lows - from >= 4) {
          pending |= u64(load_little<u32>(from)) << filled;
          from += 4;
          filled += 32;
        } else {
          pending |= u64(std::to_integer<u8>(*from++)) << filled;
          filled += 8;
        }
      }
      positions[i] |= u32(pending) & ((u32(1) << low) - 1);
      pending >>= low;
      filled -= low;
    }
    if (pending != 0) bad_positions("have bits beyond their end");
  }
  for (i64 i = 1; i < k; ++i)
    if (positions[i] <= positions[i - 1]) bad_positions("do not ascend");
  if (i64(positions[k - 1]) >= n) bad_positions("lie outside the tensor");
}

inline void read_bitmap(const std::byte* in, i64 n, i64 k, u32* positions) {
  const i64 bytes = (n + 7) / 8;
  i64 found = 0;
  for (i64 word = 0; word * 8 < bytes; ++word)
    for (u64 bits = load_word(in, bytes, word); bits != 0; bits &= bits - 1) {
      if (found == k) bad_positions("are more than its count");
      const i64 at = word * 64 + std::countr_zero(bits);
      if (at >= n) bad_positions("lie outside the tensor");
      positions[found++] = u32(at);
    }
  if (found != k) bad_positions("are fewer than its count");
}

}  // namespace detail

/// Writes ascending positions below n at `out`, `position_bytes` long.
inline void write_positions(position_coding coding, std::span<const u32> positions, i64 n, std::byte* out) {
  if (coding == position_coding::elias_fano && !positions.empty()) detail::write_elias_fano(positions, n, out);
  if (coding != position_coding::bitmap) return;
  detail::write_bits(out, position_bytes(coding, n, 0), i64(positions.size()),
                     [&](i64 i) { return i64(positions[std::size_t(i)]); });
}

/// Reads k positions into room for k from `in`, which has `position_bytes`. What it accepts ascends and lies below n.
/// Errors: errc::protocol for bytes that no writer writes.
inline void read_positions(position_coding coding, const std::byte* in, i64 n, i64 k, u32* positions) {
  if (coding == position_coding::elias_fano && k > 0) detail::read_elias_fano(in, n, k, positions);
  if (coding == position_coding::bitmap) detail::read_bitmap(in, n, k, positions);
}

}  // namespace fusionllm::inline v0
