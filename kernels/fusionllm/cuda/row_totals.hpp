// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix, for the gradients of weights and biases of norms, in two steps: parts of the rows, then
// the parts in order. What is summed in which order depends on the shape and the team's size alone.
#pragma once

#include "column_sum.hpp"
#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

/// Rows in one part, and parts: enough to fill a GPU, few beside the rows.
constexpr i64 rows_in_part(i64 rows) { return rows <= 32 * 128 ? 32 : (rows + 127) / 128; }
constexpr i64 parts_of_rows(i64 rows) { return (rows + rows_in_part(rows) - 1) / rows_in_part(rows); }
/// Floats that `row_totals` scribbles on.
template <int Sums>
constexpr u64 row_totals_workspace(i64 rows, i64 columns) {
  return u64(Sums) * u64(parts_of_rows(rows)) * u64(columns);
}

namespace detail {

/// partial (parts, Sums, columns) of the Sums terms that terms(row, column, v) gives.
template <int Sums, class Terms>
struct row_parts {
  Terms terms;
  i64 rows, columns;
  float* partial;

  FL_HD i64 tiles(u32 lanes) const { return (columns + lanes - 1) / lanes; }

  template <class Team>
  struct shared {
    float part[Sums][Team::size];
  };
  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& s) const {
    constexpr u32 lanes = Team::size < 32 ? Team::size : 32, strips = Team::size / lanes;
    const i64 per_part = rows_in_part(rows), across = tiles(lanes);
    const u32 lane = team.rank % lanes, strip = team.rank / lanes;
    each_row(team, parts_of_rows(rows) * across, [&](i64 item) {
      const i64 part = item / across, c = item % across * lanes + lane;
      const i64 end = (part + 1) * per_part < rows ? (part + 1) * per_part : rows;
      float sum[Sums] = {};
      if (c < columns)
        for (i64 r = part * per_part + strip; r < end; r += strips) {
          float v[Sums];
          terms(r, c, v);
          for (int k = 0; k < Sums; ++k) sum[k] += v[k];
        }
      for (int k = 0; k < Sums; ++k) s.part[k][team.rank] = sum[k];
      team.wait();
      if (strip == 0 && c < columns)
        for (int k = 0; k < Sums; ++k) {
          float total = 0;
          for (u32 i = 0; i < strips; ++i) total += s.part[k][i * lanes + lane];
          partial[(part * Sums + k) * columns + c] = total;
        }
      team.wait();
    });
  }
};

template <int Sums>
struct add_row_parts {
  const float* partial;
  i64 parts, columns;
  float* target[Sums];  ///< null: not wanted

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, Sums * columns, [&](i64 i) {
      const i64 k = i / columns, c = i % columns;
      if (!target[k]) return;
      float sum = 0;
      for (i64 p = 0; p < parts; ++p) sum += partial[(p * Sums + k) * columns + c];
      target[k][c] += sum;
    });
  }
};

}  // namespace detail

/// target[k][c] += the sum over rows r of v[k] of terms(r, c, v); `workspace`: `row_totals_workspace` floats.
template <class Launch, int Sums, class Terms>
void row_totals(typename Launch::context& c, const Terms& terms, i64 rows, i64 columns, float* const (&target)[Sums],
                float* workspace, const char* what) {
  if (rows == 0) return;
  const i64 parts = parts_of_rows(rows);
  const detail::row_parts<Sums, Terms> sums{terms, rows, columns, workspace};
  Launch::blocks(c, parts * sums.tiles(32), sums, what);
  detail::add_row_parts<Sums> adding{workspace, parts, columns, {}};
  for (int k = 0; k < Sums; ++k) adding.target[k] = target[k];
  Launch::items(c, Sums * columns, adding, what);
}

}  // namespace fusionllm::inline v0
