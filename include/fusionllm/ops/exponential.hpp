// SPDX-License-Identifier: Apache-2.0
// Arithmetic of element-wise operators without branches, so that compilers vectorize the loops around it, and with the
// same bits on every device.
#pragma once

#include <cmath>
#include <type_traits>

#include "../core/config.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

// __builtin_bit_cast: std::bit_cast is not for device code without a flag of nvcc.

/// a if c, else b, without a branch: compilers do not vectorize a loop in which they have made one of it.
template <class T>
FL_HD constexpr T choose(bool c, T a, T b) {
  using bits = std::conditional_t<sizeof(T) == 4, u32, u64>;
  const bits mask = bits(0) - bits(c);
  return __builtin_bit_cast(T, (__builtin_bit_cast(bits, a) & mask) | (__builtin_bit_cast(bits, b) & ~mask));
}

/// exp(x) to about one unit in the last place; x is limited to [-87, 88], where exp leaves the normal numbers.
/// Range reduction by Cody and Waite; the polynomial is the Taylor series of exp on [-ln 2 / 2, ln 2 / 2].
FL_HD inline float exponential(float x) {
  x = choose(x > 88.0f, 88.0f, x);
  x = choose(x < -87.0f, -87.0f, x);
  const float shifted = x * 1.44269504f + 12582912.0f;  // 3 * 2^22: the nearest integer is in the lowest bits
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  const u32 exponent = (__builtin_bit_cast(u32, shifted) + 127u) << 23;  // the constant's own bits are shifted out
  return p * __builtin_bit_cast(float, exponent);
}
FL_HD inline double exponential(double x) { return std::exp(x); }

}  // namespace fusionllm::inline v0
