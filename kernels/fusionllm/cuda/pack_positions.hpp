// SPDX-License-Identifier: Apache-2.0
// The bodies that write positions of a frame (the bits of compress/positions.hpp), and move entries between a tensor and
// its kept ones.
#pragma once

#include <bit>

#include <fusionllm/core/half.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0::detail {

/// A member a word of 32 bits: the low bits of position i are bits [i * low, (i + 1) * low) of out.
struct low_bits_body {
  const u32* positions;
  i64 k;
  int low;
  u32* out;

  static constexpr i64 words(i64 k, int low) { return (k * low + 31) / 32; }

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    const u32 mask = (u32(1) << low) - 1;
    each_item(team, words(k, low), [&](i64 w) {
      u32 bits = 0;
      for (i64 i = 32 * w / low; i < k && i * low < 32 * (w + 1); ++i) {
        const i64 at = i * low - 32 * w;
        const u32 v = positions[i] & mask;
        bits |= at >= 0 ? v << at : v >> -at;
      }
      out[w] = bits;
    });
  }
};

/// Every bit is set once, so that adding is setting. `out` is zero before.
struct set_bits_body {
  const u32* positions;
  i64 k;
  int shift;
  bool spread;
  u32* out;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, k, [&](i64 i) {
      const i64 bit = i64(positions[i] >> shift) + (spread ? i : 0);
      team.add(out + bit / 32, u32(1) << (bit % 32));
    });
  }
};

template <class E>
struct pick_body {
  const E* x;
  const u32* positions;
  i64 k;
  E* out;
  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, k, [&](i64 i) { out[i] = x[positions[i]]; });
  }
};
template <class E>
struct place_body {
  const E* x;
  const u32* positions;
  i64 k;
  E* out;
  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, k, [&](i64 i) { out[positions[i]] = x[i]; });
  }
};
struct compose_body {
  const u32* outer;
  u32* inner;
  i64 k;
  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, k, [&](i64 i) { inner[i] = outer[inner[i]]; });
  }
};

template <class From, class To>
struct convert_body {
  const From* x;
  To* out;
  i64 n;
  float largest;  ///< finite value of To

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, n, [&](i64 i) {
      const float v = float(x[i]);
      out[i] = To(v > largest ? largest : v < -largest ? -largest : v);
    });
  }
};

}  // namespace fusionllm::inline v0::detail
