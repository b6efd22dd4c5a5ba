// SPDX-License-Identifier: Apache-2.0
// The search for the magnitude that parts the k largest from the rest, by counting alone. It ends with the exact
// answer from any starting guess; the guess only saves passes.
#pragma once

#include "../core/types.hpp"
#include "magnitude.hpp"

namespace fusionllm::inline v0 {

/// The cut that keeps k of n keys, 0 < k < n. `count(key)` says how many keys are at least `key`; `largest` is the
/// largest; `guess` a key near the wanted one, or 0.
template <class Count>
magnitude_cut find_cut(Count&& count, i64 n, i64 k, u32 largest, u32 guess) {
  u32 low = 0, high = largest + 1;  // count(low) > k > count(high), up to the ends that nobody has counted
  i64 at_low = n, at_high = 0;
  bool low_counted = false, high_counted = false, halve = false;
  u32 stride = u32(1) << 20;  // an eighth of an octave
  u32 probe = guess > low && guess < high ? guess : (largest >> 20 > 6 ? largest - (u32(6) << 20) : largest / 2 + 1);
  while (high - low > 1) {
    if (probe <= low || probe >= high) probe = low + (high - low) / 2;
    const i64 found = count(probe);
    if (found == k) return {probe - 1, 0};
    const u32 width = high - low;
    if (found > k) {
      low = probe;
      at_low = found;
      low_counted = true;
    } else {
      high = probe;
      at_high = found;
      high_counted = true;
    }
    if (!low_counted || !high_counted) {  // walk away from the guess until it is bracketed, faster and faster
      probe = low_counted ? (high - low > stride ? low + stride : high) : (high - low > stride ? high - stride : low);
      stride = stride < (u32(1) << 28) ? stride * 2 : stride;
      continue;
    }
    halve = !halve && high - low > width / 2;  // interpolation that crawls gives way to halving
    probe = halve ? low + (high - low) / 2 : low + u32(u64(high - low) * u64(at_low - k) / u64(at_low - at_high));
  }
  return {low, k - at_high};
}

}  // namespace fusionllm::inline v0
