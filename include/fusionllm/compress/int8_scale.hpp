// SPDX-License-Identifier: Apache-2.0
// The arithmetic of int8 in blocks of 64 values, one block and one value at a time, as every device computes it. The scale
// has at most eight significant bits, so that byte * scale is exact and a block that was read is written the same again.
#pragma once

#include <bit>
#include <limits>

#include "../core/half.hpp"
#include "magnitude.hpp"

namespace fusionllm::inline v0 {

inline constexpr i64 int8_block = 64;

/// The scale for a block whose largest magnitude has this key, as 16 bits: the upper half of a normal float near
/// largest / 127, or 0x8000 + c for 2^(c - 149) where that would be denormal. The largest value becomes 127 (64 to
/// 127 in the second case). 0 for a block of zeros.
FL_HD constexpr u16 int8_scale_code(u32 largest_key) {
  constexpr u32 least_normal = 0x03FE0000u;  // the key of 127 * 2^-126
  if (largest_key >= least_normal) return bfloat16(std::bit_cast<float>(largest_key) / 127.0f).bits;
  u64 quanta = largest_key & 0x7FFFFFu;  // the magnitude in units of 2^-149
  if (largest_key >> 23 != 0) quanta = (quanta | 0x800000u) << ((largest_key >> 23) - 1);
  if (quanta == 0) return 0;
  u16 c = 0;
  while ((u64(127) << c) < quanta) ++c;
  return u16(0x8000u | c);
}

FL_HD constexpr bool int8_scale_exists(u16 code) {
  if (code >= 0x8000u) return (code & 0x7FFFu) <= 23;
  return code == 0 || (code >= 0x80u && code <= int8_scale_code(non_finite_key - 1));
}

FL_HD constexpr float int8_scale(u16 code) {
  return std::bit_cast<float>(code >= 0x8000u ? u32(1) << (code & 0x1Fu) : u32(code) << 16);
}

namespace detail {

/// A scaled value that rounding took past the largest float becomes that float.
FL_HD constexpr float clamp_to_finite(float v) {
  constexpr float largest = (std::numeric_limits<float>::max)();
  return v > largest ? largest : v < -largest ? -largest : v;
}

/// q = v / scale, rounded to nearest even, as v * before * inverse: the inverse of a tiny scale is no float.
struct int8_factors {
  float before;
  float inverse;
};
FL_HD constexpr int8_factors int8_factors_of(float scale) {
  if (scale == 0) return {0, 0};
  const float before = scale < 0x1p-100f ? 0x1p64f : 1.0f;
  return {before, 1.0f / (scale * before)};
}

/// The byte of a value: rounded to nearest even, |q| < 2^22 before it is cut to 127.
FL_HD constexpr u8 int8_byte(float v, int8_factors f) {
  const float rounded = (v * f.before * f.inverse + 0x1.8p23f) - 0x1.8p23f;
  const float q = rounded > 127.0f ? 127.0f : rounded < -127.0f ? -127.0f : rounded;
  return u8(int(q));
}

}  // namespace detail
}  // namespace fusionllm::inline v0
