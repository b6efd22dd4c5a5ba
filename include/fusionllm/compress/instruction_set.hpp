// SPDX-License-Identifier: Apache-2.0
// Which vector instructions this machine has. Only speed depends on the answer: every path gives the same bits, and a
// test compares them.
#pragma once

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

enum class instruction_set : u8 { portable, avx2, avx512 };

/// Whether this machine can run it.
inline bool supported(instruction_set set) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  static const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0
                             && __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (set == instruction_set::avx2) return avx2;
  if (set == instruction_set::avx512) return avx512;
#endif
  return set == instruction_set::portable;
}

inline instruction_set best_instruction_set() {
  if (supported(instruction_set::avx512)) return instruction_set::avx512;
  return supported(instruction_set::avx2) ? instruction_set::avx2 : instruction_set::portable;
}

}  // namespace fusionllm::inline v0
