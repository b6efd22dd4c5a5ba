// SPDX-License-Identifier: Apache-2.0
// The bodies that write kept values of a frame: the bytes of compress/values.hpp.
#pragma once

#include <fusionllm/compress/value_coding.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0::detail {

/// Parts in which a largest magnitude is looked for.
inline constexpr i64 magnitude_parts = 256;

/// part[p] = the largest magnitude of part p of v.
struct largest_parts {
  const float* v;
  i64 n;
  float* part;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, magnitude_parts, [&](i64 p) {
      const i64 each = (n + magnitude_parts - 1) / magnitude_parts;
      const i64 begin = p * each < n ? p * each : n, end = begin + each < n ? begin + each : n;
      u32 key = 0;
      each_member(team, end - begin, [&](i64 i) {
        const u32 own = magnitude_key(v[begin + i]);
        key = own > key ? own : key;
      });
      const float found = team.largest(std::bit_cast<float>(key));
      if (team.rank == 0) part[p] = found;
    });
  }
};

/// The scale of a frame of fp16, where the device and where the host reads it.
struct f16_exponent_body {
  const float* part;
  int *on_device, *shared_with_host;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    float found = 0;
    each_member(team, magnitude_parts, [&](i64 p) { found = part[p] > found ? part[p] : found; });
    found = team.largest(found);
    if (team.index == 0 && team.rank == 0) *on_device = *shared_with_host = f16_exponent(magnitude_key(found));
  }
};

struct f16_body {
  const float* v;
  i64 n;
  const int* exponent;
  u16* out;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    const int e = *exponent;
    each_item(team, n, [&](i64 i) { out[i] = f16_scaled(v[i], e).bits; });
  }
};

/// A member a block of 64 values: 2 bytes of scale, then a byte a value; out is even, and so is where each block begins.
struct int8_body {
  const float* v;
  i64 n;
  u8* out;

  static constexpr i64 blocks(i64 n) { return (n + int8_block - 1) / int8_block; }

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, blocks(n), [&](i64 b) {
      const i64 begin = b * int8_block, end = begin + int8_block < n ? begin + int8_block : n;
      u32 key = 0;
      for (i64 i = begin; i < end; ++i) {
        const u32 own = magnitude_key(v[i]);
        key = own > key ? own : key;
      }
      u8* to = out + b * (int8_block + 2);
      const u16 code = int8_scale_code(key);
      to[0] = u8(code & 0xFFu);
      to[1] = u8(code >> 8);
      const int8_factors f = int8_factors_of(int8_scale(code));
      for (i64 i = begin; i < end; ++i) to[2 + i - begin] = int8_byte(v[i], f);
    });
  }
};

}  // namespace fusionllm::inline v0::detail
