// SPDX-License-Identifier: Apache-2.0
// The passes of scan.hpp on sixteen lanes, with compressing stores.
#pragma once

#include "magnitude.hpp"
#include "scan_portable.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace fusionllm::inline v0::detail {

/// How far ahead a pass asks for memory: the hardware's own prefetch stops at the end of each page.
inline constexpr i64 prefetch_bytes = 4096;

__attribute__((target("avx512f,popcnt"))) inline __mmask16 first_lanes_avx512(i64 n) {
  return n >= 16 ? __mmask16(0xFFFF) : __mmask16((1u << n) - 1);
}

/// Sixteen keys, or the first of them: lanes that are left out are zero.
__attribute__((target("avx512f,popcnt"))) inline __m512i keys_avx512(const float* x, __mmask16 lanes) {
  return _mm512_maskz_and_epi32(lanes, _mm512_maskz_loadu_epi32(lanes, x), _mm512_set1_epi32(0x7FFFFFFF));
}
__attribute__((target("avx512f,popcnt"))) inline __m512i keys_avx512(const float* x) {
  return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
}

__attribute__((target("avx512f,popcnt"))) inline i64 count_avx512(const float* x, i64 n, u32 key) {
  const __m512i least = _mm512_set1_epi32(int(key));
  i64 i = 0, found = 0;
  const int lines = n > (1 << 14) ? 4 : 0;  // a row is in the cache
  for (; i + 64 <= n; i += 64) {
    for (int line = 0; line < lines; ++line)
      _mm_prefetch(reinterpret_cast<const char*>(x + i + 16 * line) + prefetch_bytes, _MM_HINT_T0);
    const u32 a = _mm512_cmpge_epu32_mask(keys_avx512(x + i), least);
    const u32 b = _mm512_cmpge_epu32_mask(keys_avx512(x + i + 16), least);
    const u32 c = _mm512_cmpge_epu32_mask(keys_avx512(x + i + 32), least);
    const u32 d = _mm512_cmpge_epu32_mask(keys_avx512(x + i + 48), least);
    found += std::popcount((u64(d) << 48) | (u64(c) << 32) | (b << 16) | a);
  }
  for (; i < n; i += 16) {
    const __mmask16 lanes = first_lanes_avx512(n - i);
    found += std::popcount(u32(_mm512_mask_cmpge_epu32_mask(lanes, keys_avx512(x + i, lanes), least)));
  }
  return found;
}

/// The masked form: g++ 12 warns of uninitialized values inside the plain intrinsic.
__attribute__((target("avx512f,popcnt"))) inline __m512i larger_avx512(__m512i a, __m512i b) {
  return _mm512_maskz_max_epu32(0xFFFF, a, b);
}

__attribute__((target("avx512f,popcnt"))) inline u32 largest_avx512(const float* x, i64 n) {
  __m512i a = _mm512_setzero_si512(), b = a;
  i64 i = 0;
  for (; i + 32 <= n; i += 32) {
    a = larger_avx512(a, keys_avx512(x + i));
    b = larger_avx512(b, keys_avx512(x + i + 16));
  }
  for (; i < n; i += 16) a = larger_avx512(a, keys_avx512(x + i, first_lanes_avx512(n - i)));
  alignas(64) u32 lanes[16];
  _mm512_store_si512(lanes, larger_avx512(a, b));
  u32 largest = 0;
  for (u32 lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

__attribute__((target("avx512f,popcnt"))) inline i64 keep_avx512(const float* x, i64 n, u32 base, magnitude_cut cut,
                                                                 u32* positions) {
  const __m512i key = _mm512_set1_epi32(int(cut.key));
  __m512i at = _mm512_add_epi32(_mm512_set1_epi32(int(base)),
                                _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  i64 kept = 0;
  for (i64 i = 0; i < n; i += 16) {
    const __mmask16 lanes = first_lanes_avx512(n - i);
    const __m512i keys = keys_avx512(x + i, lanes);
    u32 take = _mm512_mask_cmpgt_epu32_mask(lanes, keys, key);
    if (cut.ties > 0)
      for (u32 equal = _mm512_mask_cmpeq_epi32_mask(lanes, keys, key); equal != 0 && cut.ties > 0; equal &= equal - 1) {
        take |= equal & (0u - equal);
        --cut.ties;
      }
    const int found = std::popcount(take);
    // a register compress and a masked store: some machines run the compressing store itself from microcode
    _mm512_mask_storeu_epi32(positions + kept, first_lanes_avx512(found),
                             _mm512_maskz_compress_epi32(__mmask16(take), at));
    kept += found;
    at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
  }
  return kept;
}

__attribute__((target("avx512f,popcnt"))) inline i64 collect_avx512(const float* x, i64 n, u32 base, u32 key,
                                                                    i64 capacity, u32* positions, float* values) {
  const __m512i least = _mm512_set1_epi32(int(key));
  __m512i at = _mm512_add_epi32(_mm512_set1_epi32(int(base)),
                                _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  i64 i = 0, found = 0;
  for (; i + 16 <= n && found + 16 <= capacity; i += 16) {  // whole stores, within the capacity: masked ones are slower
    _mm_prefetch(reinterpret_cast<const char*>(x + i) + prefetch_bytes, _MM_HINT_T0);
    const __m512i bits = _mm512_loadu_si512(x + i);
    const __m512i keys = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
    const __mmask16 take = _mm512_cmpge_epu32_mask(keys, least);
    _mm512_storeu_si512(positions + found, _mm512_maskz_compress_epi32(take, at));
    _mm512_storeu_si512(values + found, _mm512_maskz_compress_epi32(take, bits));
    found += std::popcount(u32(take));
    at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
  }
  if (i >= n) return found;
  const i64 rest =
      collect_portable(x + i, n - i, base + u32(i), key, capacity - found, positions + found, values + found);
  return rest < 0 ? -1 : found + rest;
}

}  // namespace fusionllm::inline v0::detail
#endif
