// SPDX-License-Identifier: Apache-2.0
// Sums over rows, for gradients of biases: cuBLASLt and CUB have none that accumulate. The order of a sum depends on
// the shape and the team's size alone.
#pragma once

#include "team.hpp"

namespace fusionllm::inline v0 {

/// Columns that a team of `size` takes side by side, so that neighbours read neighbouring memory.
constexpr u32 column_lanes(u32 size) { return size < 32 ? size : 32; }

/// sum[c] += x[0][c] + x[1][c] + ..., x (rows, columns); `shared` holds one T a member. Teams stride over the columns.
template <class Team, class T>
FL_HD inline void column_sum(const Team& team, const T* x, i64 rows, i64 columns, T* sum, T* shared) {
  constexpr u32 lanes = column_lanes(Team::size), strips = Team::size / lanes;
  const u32 lane = team.rank % lanes, strip = team.rank / lanes;
  for (i64 base = i64(team.index) * lanes; base < columns; base += i64(team.count) * lanes) {
    const i64 c = base + lane;
    T part = 0;
    if (c < columns)
      for (i64 r = strip; r < rows; r += strips) part += x[r * columns + c];
    shared[team.rank] = part;
    team.wait();
    if (strip == 0 && c < columns) {
      T total = 0;
      for (u32 s = 0; s < strips; ++s) total += shared[s * lanes + lane];
      sum[c] += total;
    }
    team.wait();
  }
}

}  // namespace fusionllm::inline v0
