// SPDX-License-Identifier: Apache-2.0
// int8 in blocks of 64 values: a 16-bit scale, then a signed byte a value, never -128. The scale has at most eight
// significant bits, so that byte * scale is exact and a block that was read is written the same again.
#pragma once

#include <bit>
#include <limits>

#include "../core/bytes.hpp"
#include "../core/half.hpp"
#include "scan.hpp"
#include "values_avx512.hpp"

namespace fusionllm::inline v0 {

inline constexpr i64 int8_block = 64;

/// The scale for a block whose largest magnitude has this key, as 16 bits: the upper half of a normal float near
/// largest / 127, or 0x8000 + c for 2^(c - 149) where that would be denormal. The largest value becomes 127 (64 to
/// 127 in the second case). 0 for a block of zeros.
constexpr u16 int8_scale_code(u32 largest_key) {
  constexpr u32 least_normal = 0x03FE0000u;  // the key of 127 * 2^-126
  if (largest_key >= least_normal) return bfloat16(std::bit_cast<float>(largest_key) / 127.0f).bits;
  u64 quanta = largest_key & 0x7FFFFFu;  // the magnitude in units of 2^-149
  if (largest_key >> 23 != 0) quanta = (quanta | 0x800000u) << ((largest_key >> 23) - 1);
  if (quanta == 0) return 0;
  u16 c = 0;
  while ((u64(127) << c) < quanta) ++c;
  return u16(0x8000u | c);
}

constexpr bool int8_scale_exists(u16 code) {
  if (code >= 0x8000u) return (code & 0x7FFFu) <= 23;
  return code == 0 || (code >= 0x80u && code <= int8_scale_code(non_finite_key - 1));
}

constexpr float int8_scale(u16 code) {
  return std::bit_cast<float>(code >= 0x8000u ? u32(1) << (code & 0x1Fu) : u32(code) << 16);
}

namespace detail {

/// A scaled value that rounding took past the largest float becomes that float.
constexpr float clamp_to_finite(float v) {
  constexpr float largest = (std::numeric_limits<float>::max)();
  return v > largest ? largest : v < -largest ? -largest : v;
}

/// q = v / scale, rounded to nearest even, as v * before * inverse: the inverse of a tiny scale is no float.
struct int8_factors {
  float before;
  float inverse;
};
constexpr int8_factors int8_factors_of(float scale) {
  if (scale == 0) return {0, 0};
  const float before = scale < 0x1p-100f ? 0x1p64f : 1.0f;
  return {before, 1.0f / (scale * before)};
}

inline void quantize_portable(const float* v, i64 n, int8_factors f, std::byte* out) {
  for (i64 i = 0; i < n; ++i) {
    const float rounded = (v[i] * f.before * f.inverse + 0x1.8p23f) - 0x1.8p23f;  // to nearest even, |q| < 2^22
    const float q = rounded > 127.0f ? 127.0f : rounded < -127.0f ? -127.0f : rounded;
    out[i] = std::byte(u8(int(q)));
  }
}

inline void write_int8(const float* v, i64 n, std::byte* out) {
  const instruction_set set = best_instruction_set();
  const scan_passes& scan = scan_with(set);
  for (i64 begin = 0; begin < n; begin += int8_block) {
    const i64 length = n - begin < int8_block ? n - begin : int8_block;
    const u16 code = int8_scale_code(scan.largest(v + begin, length));
    store_little<u16>(out, code);
    const int8_factors f = int8_factors_of(int8_scale(code));
#if defined(__x86_64__)
    if (set == instruction_set::avx512 && length == int8_block)
      quantize_block_avx512(v + begin, f.before, f.inverse, out + 2);
    else
#endif
      quantize_portable(v + begin, length, f, out + 2);
    out += 2 + length;
  }
}

/// False where one of the bytes is -128.
inline bool read_block_portable(const std::byte* in, i64 n, float scale, float* v) {
  u32 bad = 0;
  for (i64 i = 0; i < n; ++i) {
    const int q = static_cast<std::int8_t>(in[i]);
    bad |= u32(q == -128);
    v[i] = clamp_to_finite(float(q) * scale);
  }
  return bad == 0;
}

inline void read_int8(const std::byte* in, i64 n, float* v) {
  const instruction_set set = best_instruction_set();
  for (i64 begin = 0; begin < n; begin += int8_block) {
    const i64 length = n - begin < int8_block ? n - begin : int8_block;
    const u16 code = load_little<u16>(in);
    if (!int8_scale_exists(code))
      fail(errc::protocol, "an int8 block has scale code ", code, ", which no sender writes");
    bool good = true;
#if defined(__x86_64__)
    if (set == instruction_set::avx512 && length == int8_block)
      good = read_block_avx512(in + 2, int8_scale(code), v + begin);
    else
#endif
      good = read_block_portable(in + 2, length, int8_scale(code), v + begin);
    if (!good) fail(errc::protocol, "an int8 block holds -128, which no sender writes");
    in += 2 + length;
  }
  (void)set;
}

}  // namespace detail
}  // namespace fusionllm::inline v0
