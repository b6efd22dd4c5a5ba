// SPDX-License-Identifier: Apache-2.0
// Passes over floats by magnitude, one implementation an instruction set, all with the same results.
#pragma once

#include "instruction_set.hpp"
#include "magnitude.hpp"
#include "scan_avx2.hpp"
#include "scan_avx512.hpp"
#include "scan_portable.hpp"

namespace fusionllm::inline v0 {

/// One implementation of the passes.
struct scan_passes {
  /// How many of n keys are at least `key`.
  i64 (*count)(const float* x, i64 n, u32 key);
  /// The largest of n keys; 0 for none.
  u32 (*largest)(const float* x, i64 n);
  /// Positions, plus `base`, of what the cut keeps. Returns how many, and writes no more.
  i64 (*keep)(const float* x, i64 n, u32 base, magnitude_cut cut, u32* positions);
  /// Positions, plus `base`, and values of keys at least `key`. Stops with -1 where it finds more than `capacity`;
  /// may write up to there.
  i64 (*collect)(const float* x, i64 n, u32 base, u32 key, i64 capacity, u32* positions, float* values);
};

/// The passes for an instruction set, or the portable ones where this machine lacks it.
inline const scan_passes& scan_with(instruction_set set) {
  static constexpr scan_passes portable = {detail::count_portable, detail::largest_portable, detail::keep_portable,
                                           detail::collect_portable};
#if defined(__x86_64__)
  static constexpr scan_passes avx2 = {detail::count_avx2, detail::largest_avx2, detail::keep_avx2,
                                       detail::collect_avx2};
  static constexpr scan_passes avx512 = {detail::count_avx512, detail::largest_avx512, detail::keep_avx512,
                                         detail::collect_avx512};
  if (set == instruction_set::avx512 && supported(set)) return avx512;
  if (set == instruction_set::avx2 && supported(set)) return avx2;
#endif
  (void)set;
  return portable;
}

/// Position of the first infinity or NaN, or -1.
inline i64 first_non_finite(const float* x, i64 n, instruction_set set = best_instruction_set()) {
  constexpr i64 block = 1 << 14;
  const scan_passes& scan = scan_with(set);
  for (i64 begin = 0; begin < n; begin += block) {
    const i64 length = n - begin < block ? n - begin : block;
    if (scan.largest(x + begin, length) < non_finite_key) continue;
    for (i64 i = begin;; ++i)
      if (magnitude_key(x[i]) >= non_finite_key) return i;
  }
  return -1;
}

}  // namespace fusionllm::inline v0
