// SPDX-License-Identifier: Apache-2.0
// Exact top-k of each row of a matrix, a team a row: the k-th largest key digit by digit (radix selection in shared
// memory), then the row once more in order, each member knowing what those before it keep.
#pragma once

#include "select.hpp"
#include "team_kernel.hpp"

namespace fusionllm::inline v0::detail {

/// positions (rows, k) of x (rows, columns), ascending; 0 < k <= columns.
struct select_rows_body {
  const float* x;
  i64 rows, columns, k;
  u32* positions;

  static constexpr u32 digits = 256;
  template <class Team>
  struct shared {
    u32 counts[digits];
    u32 key, wanted;
  };

  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& s) const {
    static_assert(digits % Team::size == 0);
    each_row(team, rows, [&](i64 row) {
      const float* from = x + row * columns;
      u32 key = 0, wanted = u32(k);
      for (int shift = 24; shift >= 0; shift -= 8) {
        count(team, from, key, shift, s.counts);
        pick(team, s, key, shift, wanted);
        key = s.key;
        wanted = s.wanted;
        team.wait();
      }
      keep(team, row, from, key, wanted);
    });
  }

 private:
  template <class Team>
  FL_HD void count(const Team& team, const float* from, u32 key, int shift, u32* counts) const {
    each_member(team, digits, [&](i64 i) { counts[i] = 0; });
    team.wait();
    each_member(team, columns, [&](i64 i) {
      const u32 found = magnitude_key(from[i]);
      if (shift == 24 || found >> (shift + 8) == key >> (shift + 8)) team.add(counts + (found >> shift & 0xFFu), 1);
    });
    team.wait();
  }
  template <class Team>
  FL_HD void pick(const Team& team, shared<Team>& s, u32 key, int shift, u32 wanted) const {
    constexpr u32 each = digits / Team::size;
    const u32 top = digits - 1 - team.rank * each;  // members take digits from the largest down
    u64 mine = 0, total = 0;
    for (u32 i = 0; i < each; ++i) mine += s.counts[top - i];
    u64 larger = team.sum_before(mine, total);
    if (larger < wanted && wanted <= larger + mine) {
      u32 digit = top;
      while (larger + s.counts[digit] < wanted) larger += s.counts[digit--];
      s.key = key | digit << shift;
      s.wanted = u32(wanted - larger);
    }
    team.wait();
  }
  /// Of the entries equal to `key` the first `ties`.
  template <class Team>
  FL_HD void keep(const Team& team, i64 row, const float* from, u32 key, u32 ties) const {
    u64 before_round = 0;
    for (i64 first = 0; first < columns; first += Team::size) {
      const i64 i = first + team.rank;
      const u32 own = i < columns ? magnitude_key(from[i]) : 0;
      const bool above = i < columns && own > key, equal = i < columns && own == key;
      u64 total = 0;
      const u64 before = before_round + team.sum_before(packed_counts(above, equal), total);
      before_round += total;
      const u32 larger = u32(before >> 32), same = u32(before);
      if (above || (equal && same < ties))
        positions[row * k + larger + (same < ties ? same : ties)] = u32(row * columns + i);
    }
  }
};

}  // namespace fusionllm::inline v0::detail
