// SPDX-License-Identifier: Apache-2.0
// Magnitudes of floats as keys: the bits without the sign. Keys are ordered as magnitudes are, with -0 equal to +0,
// denormals exact whatever the floating-point mode, and infinities and NaNs above every finite number.
#pragma once

#include <bit>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// The key of a float: below 2^31.
constexpr u32 magnitude_key(float x) { return std::bit_cast<u32>(x) & 0x7FFFFFFFu; }

/// Keys from here on are infinities and NaNs.
inline constexpr u32 non_finite_key = 0x7F800000u;

/// What to keep: every key above `key`, and the first `ties` of those equal to it.
struct magnitude_cut {
  u32 key = 0;
  i64 ties = 0;
};

}  // namespace fusionllm::inline v0
