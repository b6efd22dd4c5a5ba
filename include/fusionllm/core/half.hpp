// SPDX-License-Identifier: Apache-2.0
// fp16 and bf16 as own 16-bit types (g++ 12 has neither), round to nearest even, bit-equal to CUDA's conversions.
#pragma once

#include <bit>

#include "config.hpp"
#include "types.hpp"

namespace fusionllm::inline v0 {

/// IEEE binary16.
struct float16 {
  u16 bits = 0;

  float16() = default;
  FL_HD constexpr explicit float16(float value) : bits(round(value)) {}
  FL_HD constexpr explicit operator float() const {
    const u32 sign = u32(bits & 0x8000u) << 16;
    const u32 exponent = (bits >> 10) & 0x1Fu;
    const u32 mantissa = bits & 0x3FFu;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    const float tiny = float(mantissa) * 0x1p-24f;
    return sign ? -tiny : tiny;
  }

 private:
  FL_HD static constexpr u16 round(float value) {
    const u32 x = std::bit_cast<u32>(value);
    const u16 sign = u16((x >> 16) & 0x8000u);
    const u32 magnitude = x & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return u16(sign | 0x7E00u);                    // NaN stays NaN
    if (magnitude >= 0x477FF000u) return u16(sign | 0x7C00u);                   // 65520 and above round to infinity
    if (magnitude < 0x38800000u) {                                              // below 2^-14: subnormal
      const u32 shift = 126 - (magnitude >> 23);
      if (shift > 24) return sign;
      const u32 m = (magnitude & 0x7FFFFFu) | 0x800000u;
      const u32 kept = m >> shift;
      const u32 rest = m & ((1u << shift) - 1);
      const u32 half = 1u << (shift - 1);
      return u16(sign | (kept + (rest > half || (rest == half && (kept & 1)))));
    }
    const u32 rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
    return u16(sign | ((rounded - 0x38000000u) >> 13));
  }
};

/// The upper half of an fp32.
struct bfloat16 {
  u16 bits = 0;

  bfloat16() = default;
  FL_HD constexpr explicit bfloat16(float value) : bits(round(value)) {}
  FL_HD constexpr explicit operator float() const { return std::bit_cast<float>(u32(bits) << 16); }

 private:
  FL_HD static constexpr u16 round(float value) {
    const u32 x = std::bit_cast<u32>(value);
    if ((x & 0x7FFFFFFFu) > 0x7F800000u) return u16((x >> 16) | 0x40u);
    return u16((x + 0x7FFFu + ((x >> 16) & 1u)) >> 16);
  }
};

template <>
inline constexpr dtype dtype_of<float16> = dtype::f16;
template <>
inline constexpr dtype dtype_of<bfloat16> = dtype::bf16;

}  // namespace fusionllm::inline v0
