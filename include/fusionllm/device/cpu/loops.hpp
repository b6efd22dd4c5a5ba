// SPDX-License-Identifier: Apache-2.0
// Each vector loop is written once, in loops_*.inc, over the lanes of lanes_*.inc; those files are compiled here once
// an instruction set, inside a region in which the compiler may use it, so that nothing of a program needs -march.
#pragma once

#include <cmath>
#include <cstring>
#include <utility>

#include "loop_table.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fusionllm::inline v0::detail::portable {
inline constexpr int width = 4;
#include "lanes.inc"
#include "lanes_portable.inc"
#include "loops_all.inc"
}  // namespace fusionllm::inline v0::detail::portable

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace fusionllm::inline v0::detail::avx2 {
inline constexpr int width = 8;
#include "lanes.inc"
#include "lanes_avx2.inc"
#include "loops_all.inc"
}  // namespace fusionllm::inline v0::detail::avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))), \
                             apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")
#endif
namespace fusionllm::inline v0::detail::avx512 {
inline constexpr int width = 16;
#include "lanes.inc"
#include "lanes_avx512.inc"
#include "loops_all.inc"
}  // namespace fusionllm::inline v0::detail::avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__

namespace fusionllm::inline v0 {

/// The loops for an instruction set that this machine has.
inline const loop_table& loops_for(vector_isa isa) {
#if defined(__x86_64__)
  if (isa == vector_isa::avx512) return detail::avx512::table;
  if (isa == vector_isa::avx2) return detail::avx2::table;
#endif
  static_cast<void>(isa);
  return detail::portable::table;
}

}  // namespace fusionllm::inline v0
