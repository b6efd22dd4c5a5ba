// SPDX-License-Identifier: Apache-2.0
// int8 in blocks of 64 values: a 16-bit scale (int8_scale.hpp), then a signed byte a value, never -128.
#pragma once

#include "../core/bytes.hpp"
#include "int8_scale.hpp"
#include "scan.hpp"
#include "values_avx512.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline void quantize_portable(const float* v, i64 n, int8_factors f, std::byte* out) {
  for (i64 i = 0; i < n; ++i) out[i] = std::byte(int8_byte(v[i], f));
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
