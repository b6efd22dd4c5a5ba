// SPDX-License-Identifier: Apache-2.0
// The passes of scan.hpp on eight lanes. Keys are below 2^31, so that signed comparisons order them.
#pragma once

#include "magnitude.hpp"
#include "scan_portable.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace fusionllm::inline v0::detail {

__attribute__((target("avx2"))) inline __m256i keys_avx2(const float* x) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
}

/// One bit a lane.
__attribute__((target("avx2"))) inline u32 lanes_avx2(__m256i mask) {
  return u32(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

__attribute__((target("avx2"))) inline i64 count_avx2(const float* x, i64 n, u32 key) {
  const __m256i below = _mm256_set1_epi32(int(key - 1));
  __m256i a = _mm256_setzero_si256(), b = a;
  i64 i = 0, found = 0;
  while (i + 16 <= n) {
    const i64 stop = n - i < (i64(1) << 30) ? n : i + (i64(1) << 30);  // lanes count in 32 bits
    for (; i + 16 <= stop; i += 16) {
      a = _mm256_sub_epi32(a, _mm256_cmpgt_epi32(keys_avx2(x + i), below));
      b = _mm256_sub_epi32(b, _mm256_cmpgt_epi32(keys_avx2(x + i + 8), below));
    }
    alignas(32) u32 lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi32(a, b));
    for (u32 lane : lanes) found += lane;
    a = b = _mm256_setzero_si256();
  }
  return found + count_portable(x + i, n - i, key);
}

__attribute__((target("avx2"))) inline u32 largest_avx2(const float* x, i64 n) {
  __m256i a = _mm256_setzero_si256(), b = a;
  i64 i = 0;
  for (; i + 16 <= n; i += 16) {
    a = _mm256_max_epi32(a, keys_avx2(x + i));
    b = _mm256_max_epi32(b, keys_avx2(x + i + 8));
  }
  alignas(32) u32 lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_max_epi32(a, b));
  u32 largest = largest_portable(x + i, n - i);
  for (u32 lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

__attribute__((target("avx2"))) inline i64 keep_avx2(const float* x, i64 n, u32 base, magnitude_cut cut,
                                                     u32* positions) {
  const __m256i key = _mm256_set1_epi32(int(cut.key));
  i64 i = 0, kept = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i keys = keys_avx2(x + i);
    u32 lanes = lanes_avx2(_mm256_cmpgt_epi32(keys, key));
    if (cut.ties > 0)
      for (u32 equal = lanes_avx2(_mm256_cmpeq_epi32(keys, key)); equal != 0 && cut.ties > 0; equal &= equal - 1) {
        lanes |= equal & (0u - equal);
        --cut.ties;
      }
    for (; lanes != 0; lanes &= lanes - 1) positions[kept++] = base + u32(i) + u32(std::countr_zero(lanes));
  }
  return kept + keep_portable(x + i, n - i, base + u32(i), cut, positions + kept);
}

__attribute__((target("avx2"))) inline i64 collect_avx2(const float* x, i64 n, u32 base, u32 key, i64 capacity,
                                                        u32* positions, float* values) {
  const __m256i below = _mm256_set1_epi32(int(key - 1));
  i64 i = 0, found = 0;
  for (; i + 8 <= n && found + 8 <= capacity; i += 8)
    for (u32 lanes = lanes_avx2(_mm256_cmpgt_epi32(keys_avx2(x + i), below)); lanes != 0; lanes &= lanes - 1) {
      const i64 at = i + std::countr_zero(lanes);
      positions[found] = base + u32(at);
      values[found++] = x[at];
    }
  const i64 rest =
      collect_portable(x + i, n - i, base + u32(i), key, capacity - found, positions + found, values + found);
  return rest < 0 ? -1 : found + rest;
}

}  // namespace fusionllm::inline v0::detail
#endif
