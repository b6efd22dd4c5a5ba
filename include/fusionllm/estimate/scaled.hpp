// SPDX-License-Identifier: Apache-2.0
// Products and quotients of 64-bit integers through 128 bits, rounded up and saturated: costs are computed with these
// alone, so that no compiler and no instruction set can change a plan.
#pragma once

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

namespace detail {
__extension__ using u128 = unsigned __int128;
inline constexpr i64 i64_max = 0x7FFFFFFFFFFFFFFF;
}  // namespace detail

/// A duration that no step reaches: the cost of what cannot be done. Sums of a few stay below overflow.
inline constexpr nanoseconds never = detail::i64_max / 1024;

/// ceil(a * b / divisor), at most `never`. A divisor of 0 gives `never` unless the product is 0.
constexpr i64 scaled(u64 a, u64 b, u64 divisor) {
  if (a == 0 || b == 0) return 0;
  if (divisor == 0) return never;
  if (b <= ~u64(0) / a && a * b <= ~u64(0) - divisor) {
    const u64 q = (a * b + divisor - 1) / divisor;
    return q > u64(never) ? never : i64(q);
  }
  const detail::u128 q = (detail::u128(a) * b + divisor - 1) / divisor;
  return q > detail::u128(never) ? never : i64(q);
}

/// a + b of durations up to `never`, at most `never`.
constexpr nanoseconds plus(nanoseconds a, nanoseconds b) { return a + b > never ? never : a + b; }

}  // namespace fusionllm::inline v0
