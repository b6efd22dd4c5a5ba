// SPDX-License-Identifier: Apache-2.0
// The bodies of exact top-k selection by magnitude, the lowest position first among equals. The k-th largest key is
// found digit by digit from the top (radix selection); then tiles of the input count what they keep, the counts are
// summed over the tiles before each (by CUB), and every tile knows where its positions go, in ascending order.
#pragma once

#include <fusionllm/compress/magnitude.hpp>

#include "team.hpp"

namespace fusionllm::inline v0 {

/// A key (31 bits) is read as three digits: the exponent with three bits of the mantissa, then ten bits twice.
inline constexpr int digit_passes = 3;
inline constexpr u32 digit_values = 2048;
constexpr int digit_shift(int pass) { return pass == 0 ? 20 : pass == 1 ? 10 : 0; }
constexpr int digit_bits(int pass) { return pass == 0 ? 11 : 10; }

/// Where a selection stands, in device memory.
struct selection_state {
  u32 key = 0;         ///< the digits found so far, in the end the k-th largest key
  u32 wanted = 0;      ///< how many of the keys with these digits belong to the k largest
  u32 non_finite = 0;  ///< not 0: the input holds an infinity or a NaN
};

/// Adds to counts[digit] how many keys that begin with the digits of `state` have that digit; `local` is zeroed scratch
/// of the team.
template <class Team>
FL_HD inline void count_digits(const Team& team, const float* x, i64 n, const selection_state& state, int pass,
                               u32* local, u32* counts) {
  for (u32 i = team.rank; i < digit_values; i += team.size) local[i] = 0;
  team.wait();
  const int shift = digit_shift(pass), above = shift + digit_bits(pass);
  const u32 mask = (u32(1) << digit_bits(pass)) - 1, known = state.key >> above;
  for (i64 i = i64(team.index) * team.size + team.rank; i < n; i += i64(team.count) * team.size) {
    const u32 key = magnitude_key(x[i]);
    if (key >> above == known) team.add(local + (key >> shift & mask), 1);
  }
  team.wait();
  for (u32 i = team.rank; i < digit_values; i += team.size)
    if (local[i] != 0) team.add(counts + i, local[i]);
}

/// Finds the digit of the k-th largest key from the counts, and zeroes them for the next pass. One team.
template <class Team>
FL_HD inline void pick_digit(const Team& team, u32* counts, int pass, selection_state& state) {
  constexpr u32 per_member = digit_values / Team::size;
  const u32 top = digit_values - 1 - team.rank * per_member;  // members take digits from the largest down
  const u64 wanted = state.wanted;
  u64 mine = 0, total = 0;
  for (u32 i = 0; i < per_member; ++i) mine += counts[top - i];
  u64 larger = team.sum_before(mine, total);  // all have read `wanted` and the counts
  if (larger < wanted && wanted <= larger + mine) {
    u32 digit = top;
    while (larger + counts[digit] < wanted) larger += counts[digit--];
    state.key |= digit << digit_shift(pass);
    state.wanted = u32(wanted - larger);
  }
  team.wait();
  for (u32 i = team.rank; i < digit_values; i += team.size) counts[i] = 0;
}

inline constexpr u32 tile_rounds = 8;
/// Elements of one tile of a team of `size`.
constexpr i64 tile_elements(u32 size) { return i64(size) * 4 * tile_rounds; }
constexpr u32 tiles_of(i64 n, u32 size) { return u32(n / tile_elements(size) + (n % tile_elements(size) != 0)); }

/// Two counts in one number, so that one sum adds both: keys above the cut, keys equal to it. n is below 2^32.
constexpr u64 packed_counts(u32 above, u32 equal) { return u64(above) << 32 | equal; }

namespace detail {

/// Calls f(first, quad of x, count of both kinds in it) for the member's quad of each round, in ascending order.
template <bool Whole, class Team, class F>
FL_HD inline void each_round(const Team& team, const float* x, i64 n, u32 key, F& f) {
  const i64 tile = i64(team.index) * tile_elements(Team::size);
  for (u32 round = 0; round < tile_rounds; ++round) {
    const i64 first = tile + (i64(round) * Team::size + team.rank) * 4;
    quad<float> q{};
    u32 above = 0, equal = 0;
    if (Whole || first < n) {
      q = load_quad<Whole>(x, first, n);
      for (int j = 0; j < 4; ++j) {
        const u32 k = magnitude_key(q.v[j]);
        above += (Whole || first + j < n) && k > key;
        equal += (Whole || first + j < n) && k == key;
      }
    }
    f(first, q, packed_counts(above, equal));
  }
}

template <class Team, class F>
FL_HD inline void each_tile_quad(const Team& team, const float* x, i64 n, u32 key, F&& f) {
  const bool whole = quad_aligned(x) && (i64(team.index) + 1) * tile_elements(Team::size) <= n;
  whole ? each_round<true>(team, x, n, key, f) : each_round<false>(team, x, n, key, f);
}

}  // namespace detail

/// sums[tile] = the tile's counts; the tile is the team's index.
template <class Team>
FL_HD inline void count_tile(const Team& team, const float* x, i64 n, selection_state& state, u64* sums) {
  u64 mine = 0, total = 0;
  u32 non_finite = 0;
  detail::each_tile_quad(team, x, n, state.key, [&](i64, const quad<float>& q, u64 counts) {
    mine += counts;
    for (int j = 0; j < 4; ++j) non_finite |= magnitude_key(q.v[j]) >= non_finite_key;
  });
  if (non_finite) state.non_finite = 1;  // whoever writes, writes 1
  team.sum_before(mine, total);
  if (team.rank == 0) sums[team.index] = total;
}

/// Writes positions, and values if wanted, of the k largest of the tile. sums[t]: counts of all tiles before t; the
/// entry after the last tile's: of all.
template <class Team>
FL_HD inline void keep_tile(const Team& team, const float* x, i64 n, i64 k, const selection_state& state,
                            const u64* sums, u32* positions, float* values) {
  const u32 tiles = tiles_of(n, Team::size);
  const u64 ties = u64(k) - (sums[tiles] >> 32);
  u64 before_round = sums[team.index];
  detail::each_tile_quad(team, x, n, state.key, [&](i64 first, const quad<float>& q, u64 counts) {
    u64 total = 0;
    u64 before = before_round + team.sum_before(counts, total);
    before_round += total;
    if (counts == 0) return;
    for (int j = 0; j < 4; ++j) {
      const u32 key = magnitude_key(q.v[j]);
      if (first + j >= n || key < state.key) continue;
      const u64 above = before >> 32, equal = before & 0xFFFFFFFFu;
      before += key > state.key ? packed_counts(1, 0) : packed_counts(0, 1);
      if (key == state.key && equal >= ties) continue;
      const u64 at = above + (equal < ties ? equal : ties);
      positions[at] = u32(first + j);
      if (values) values[at] = q.v[j];
    }
  });
}

}  // namespace fusionllm::inline v0
