// SPDX-License-Identifier: Apache-2.0
// Which vector instructions the CPU kernels use. Their bits depend on it (fused multiply-add), as do oneDNN's: peers
// whose results must agree to the last bit have the same.
#pragma once

#include "../../core/types.hpp"

namespace fusionllm::inline v0 {

enum class vector_isa : u8 { portable, avx2, avx512 };

constexpr const char* name_of(vector_isa isa) {
  return isa == vector_isa::avx512 ? "avx512" : isa == vector_isa::avx2 ? "avx2" : "portable";
}

/// Whether this machine can run it.
inline bool has(vector_isa isa) {
#if defined(__x86_64__)
  if (isa == vector_isa::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == vector_isa::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && has(vector_isa::avx2)
           && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#endif
  return isa == vector_isa::portable;
}

inline vector_isa best_vector_isa() {
  if (has(vector_isa::avx512)) return vector_isa::avx512;
  return has(vector_isa::avx2) ? vector_isa::avx2 : vector_isa::portable;
}

}  // namespace fusionllm::inline v0
