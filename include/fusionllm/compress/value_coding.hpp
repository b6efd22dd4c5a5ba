// SPDX-License-Identifier: Apache-2.0
// How kept values are coded, their sizes, and the scale of fp16: what a device that packs frames itself needs to know.
#pragma once

#include <bit>

#include "int8_scale.hpp"

namespace fusionllm::inline v0 {

enum class value_coding : u8 {
  bytes = 0,  ///< the elements as they are, of the tensor's own type
  f32 = 1,
  f16 = 2,   ///< value * 2^exponent, so that the largest is in [2^14, 2^15): tiny cotangents stay normal
  int8 = 3,  ///< int8_block.hpp
  own = 255  ///< a user's compressor
};

/// Bytes of n values.
constexpr i64 value_bytes(value_coding coding, i64 n) {
  switch (coding) {
    case value_coding::f32:
      return 4 * n;
    case value_coding::f16:
      return 2 * n;
    case value_coding::int8:
      return n + 2 * ((n + int8_block - 1) / int8_block);
    default:
      return 0;
  }
}

inline constexpr int least_f16_exponent = -114;
inline constexpr int largest_f16_exponent = 163;

/// The power of two that takes the largest magnitude, rounded to fp16's 11 bits, into [2^14, 2^15); 0 for key 0.
FL_HD constexpr int f16_exponent(u32 largest_key) {
  if (largest_key == 0) return 0;
  u32 bits = largest_key & 0x7FFFFFu;
  int exponent = int(largest_key >> 23);
  if (exponent == 0) {  // denormal: shift its leading one to where a normal float has it
    int shift = 0;
    for (; (bits & 0x800000u) == 0; ++shift) bits <<= 1;
    exponent = 1 - shift;
  }
  bits |= 0x800000u;
  if (bits + 0xFFFu + ((bits >> 13) & 1u) >= 0x1000000u) ++exponent;  // rounds up to the next power
  return 14 - (exponent - 127);
}

/// 2^e for -126 <= e <= 127.
FL_HD constexpr float power_of_two(int e) { return std::bit_cast<float>(u32(e + 127) << 23); }

/// A value scaled by 2^exponent as fp16; 2^163 is no float, so that it is two factors.
FL_HD constexpr float16 f16_scaled(float v, int exponent) {
  return float16(v * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2));
}

}  // namespace fusionllm::inline v0
