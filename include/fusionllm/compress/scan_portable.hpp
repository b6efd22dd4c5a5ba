// SPDX-License-Identifier: Apache-2.0
// The passes of scan.hpp as plain loops: what the others must equal.
#pragma once

#include "magnitude.hpp"

namespace fusionllm::inline v0::detail {

inline i64 count_portable(const float* x, i64 n, u32 key) {
  i64 found = 0;
  for (i64 i = 0; i < n; ++i) found += magnitude_key(x[i]) >= key;
  return found;
}

inline u32 largest_portable(const float* x, i64 n) {
  u32 largest = 0;
  for (i64 i = 0; i < n; ++i) largest = magnitude_key(x[i]) > largest ? magnitude_key(x[i]) : largest;
  return largest;
}

inline i64 keep_portable(const float* x, i64 n, u32 base, magnitude_cut cut, u32* positions) {
  i64 kept = 0;
  for (i64 i = 0; i < n; ++i) {
    const u32 key = magnitude_key(x[i]);
    if (key < cut.key || (key == cut.key && cut.ties == 0)) continue;
    if (key == cut.key) --cut.ties;
    positions[kept++] = base + u32(i);
  }
  return kept;
}

inline i64 collect_portable(const float* x, i64 n, u32 base, u32 key, i64 capacity, u32* positions, float* values) {
  i64 found = 0;
  for (i64 i = 0; i < n; ++i) {
    if (magnitude_key(x[i]) < key) continue;
    if (found == capacity) return -1;
    positions[found] = base + u32(i);
    values[found++] = x[i];
  }
  return found;
}

}  // namespace fusionllm::inline v0::detail
