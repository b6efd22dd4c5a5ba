// SPDX-License-Identifier: Apache-2.0
// How the kept values of a frame are written: fp32, fp16 with one power-of-two scale a frame, or int8 in blocks of 64
// with a scale each. Writing what was read gives the same bytes again; reading is the same on every machine.
#pragma once

#include <bit>
#include <cstring>
#include <span>

#include "../core/bytes.hpp"
#include "int8_block.hpp"
#include "value_coding.hpp"
#include "values_avx512.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline void write_f16(const float* v, i64 n, int exponent, std::byte* out) {
  const float a = power_of_two(exponent / 2), b = power_of_two(exponent - exponent / 2);  // 2^163 is no float
  i64 i = 0;
#if defined(__x86_64__)
  if (supported(instruction_set::avx512)) i = write_f16_avx512(v, n, a, b, out);
#endif
  for (; i < n; ++i) store_little<u16>(out + 2 * i, float16(v[i] * a * b).bits);
}

inline void read_f16(const std::byte* in, i64 n, int exponent, float* v) {
  const float a = power_of_two(-exponent / 2), b = power_of_two(-exponent - -exponent / 2);
  u32 bad = 0;
  i64 i = 0;
#if defined(__x86_64__)
  if (supported(instruction_set::avx512)) i = read_f16_avx512(in, n, a, b, v, bad);
#endif
  for (; i < n; ++i) {
    float16 h;
    h.bits = load_little<u16>(in + 2 * i);
    bad |= u32((h.bits & 0x7C00u) == 0x7C00u);
    v[i] = clamp_to_finite(float(h) * a * b);
  }
  if (bad != 0) fail(errc::protocol, "fp16 values of a frame hold an infinity or NaN: the frame is damaged");
}

inline void copy_bytes(void* to, const void* from, i64 n) {
  if (n > 0) std::memcpy(to, from, std::size_t(n));
}

}  // namespace detail

/// Writes n finite values at `out`, `value_bytes` long. Returns the frame's scale exponent.
inline int write_values(value_coding coding, const float* v, i64 n, std::byte* out) {
  static_assert(std::endian::native == std::endian::little, "frames are little-endian, and so must the machine be");
  switch (coding) {
    case value_coding::f16: {
      const int exponent = f16_exponent(scan_with(best_instruction_set()).largest(v, n));
      detail::write_f16(v, n, exponent, out);
      return exponent;
    }
    case value_coding::int8:
      return detail::write_int8(v, n, out), 0;
    default:
      return detail::copy_bytes(out, v, 4 * n), 0;
  }
}

/// Reads n values from `in`, which has `value_bytes`. Errors: errc::protocol for what no writer writes; whether fp32
/// values are finite is left to the caller.
inline void read_values(value_coding coding, int exponent, const std::byte* in, i64 n, float* v) {
  const bool scaled = coding == value_coding::f16;
  if (scaled ? exponent < least_f16_exponent || exponent > largest_f16_exponent : exponent != 0)
    fail(errc::protocol, "the scale exponent of a frame is ", exponent, ": expected ", scaled ? least_f16_exponent : 0,
         " to ", scaled ? largest_f16_exponent : 0);
  switch (coding) {
    case value_coding::f16:
      return detail::read_f16(in, n, exponent, v);
    case value_coding::int8:
      return detail::read_int8(in, n, v);
    default:
      return detail::copy_bytes(v, in, 4 * n);
  }
}

}  // namespace fusionllm::inline v0
