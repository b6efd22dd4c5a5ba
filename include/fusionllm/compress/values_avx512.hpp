// SPDX-License-Identifier: Apache-2.0
// The inner loops of writing and reading fp16 and int8 on sixteen lanes, bit-equal to the portable ones.
#pragma once

#include <cstddef>
#include <limits>

#include "../core/types.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace fusionllm::inline v0::detail {

/// Writes v * a * b as fp16, sixteen at a time. Returns how many were written.
__attribute__((target("avx512f"))) inline i64 write_f16_avx512(const float* v, i64 n, float a, float b,
                                                               std::byte* out) {
  const __m512 first = _mm512_set1_ps(a), second = _mm512_set1_ps(b);
  i64 i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 scaled = _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(v + i), first), second);
    const __m256i half = _mm512_maskz_cvtps_ph(0xFFFF, scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i), half);
  }
  return i;
}

/// Reads fp16 * a * b, clamped to finite numbers, sixteen at a time. Returns how many were read; `bad` becomes non-zero
/// where one was infinite or a NaN.
__attribute__((target("avx512f"))) inline i64 read_f16_avx512(const std::byte* in, i64 n, float a, float b, float* v,
                                                              u32& bad) {
  const __m512 first = _mm512_set1_ps(a), second = _mm512_set1_ps(b);
  const __m512 most = _mm512_set1_ps((std::numeric_limits<float>::max)());
  const __m512i infinity = _mm512_set1_epi32(0x7F800000);
  i64 i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 half = _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 2 * i)));
    const __m512i exponent = _mm512_and_si512(_mm512_castps_si512(half), infinity);
    bad |= u32(_mm512_cmpeq_epi32_mask(exponent, infinity));
    __m512 scaled = _mm512_mul_ps(_mm512_mul_ps(half, first), second);
    scaled = _mm512_maskz_min_ps(0xFFFF, scaled, most);
    scaled = _mm512_maskz_max_ps(0xFFFF, scaled, _mm512_sub_ps(_mm512_setzero_ps(), most));
    _mm512_storeu_ps(v + i, scaled);
  }
  return i;
}

/// Writes the 64 bytes of a block.
__attribute__((target("avx512f"))) inline void quantize_block_avx512(const float* v, float before, float inverse,
                                                                     std::byte* out) {
  const __m512 first = _mm512_set1_ps(before), second = _mm512_set1_ps(inverse);
  for (int i = 0; i < 64; i += 16) {
    const __m512 scaled = _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(v + i), first), second);
    __m512i q = _mm512_maskz_cvtps_epi32(0xFFFF, scaled);
    q = _mm512_maskz_min_epi32(0xFFFF, q, _mm512_set1_epi32(127));
    q = _mm512_maskz_max_epi32(0xFFFF, q, _mm512_set1_epi32(-127));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm512_maskz_cvtepi32_epi8(0xFFFF, q));
  }
}

/// Reads the 64 bytes of a block, times its scale, clamped to finite numbers. False where one is -128.
__attribute__((target("avx512f"))) inline bool read_block_avx512(const std::byte* in, float scale, float* v) {
  const __m512 factor = _mm512_set1_ps(scale);
  const __m512 most = _mm512_set1_ps((std::numeric_limits<float>::max)());
  u32 bad = 0;
  for (int i = 0; i < 64; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    const __m512i q = _mm512_maskz_cvtepi8_epi32(0xFFFF, bytes);
    bad |= u32(_mm512_cmpeq_epi32_mask(q, _mm512_set1_epi32(-128)));
    __m512 scaled = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xFFFF, q), factor);
    scaled = _mm512_maskz_min_ps(0xFFFF, scaled, most);
    scaled = _mm512_maskz_max_ps(0xFFFF, scaled, _mm512_sub_ps(_mm512_setzero_ps(), most));
    _mm512_storeu_ps(v + i, scaled);
  }
  return bad == 0;
}

}  // namespace fusionllm::inline v0::detail
#endif
