// SPDX-License-Identifier: Apache-2.0
// Products of small tiles in shared memory, whose results lie in the members' registers: a member has the rows and
// columns of its place in a grid of members, strided, so that neighbours read neighbouring memory. Sums are fused
// multiply-adds in ascending order: for one shape the bits are those of every team.
#pragma once

#include <cmath>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

/// How many rows of members a team of `size` makes.
constexpr int grid_rows(u32 size) { return size >= 256 ? 16 : size >= 64 ? 8 : size >= 16 ? 4 : size >= 4 ? 2 : 1; }
constexpr int grid_columns(u32 size) { return int(size) / grid_rows(size); }

/// Where element (row, column) of a tile lies: at row * Row + column * Column.
template <int Row, int Column>
struct tile_view {
  const float* data;
  FL_HD float at(int r, int c) const { return data[r * Row + c * Column]; }
};

/// A member's share of a tile of Rows x Columns sums.
template <int Rows, int Columns, u32 Size>
class tile_part {
  static constexpr int across = grid_columns(Size), down = grid_rows(Size);
  static constexpr bool whole = Columns % across == 0 && Rows % down == 0;

 public:
  static constexpr int rows = (Rows + down - 1) / down, columns = (Columns + across - 1) / across;
  float v[rows][columns] = {};

  FL_HD explicit tile_part(u32 rank) : row0_(int(rank) / across), column0_(int(rank) % across) {}
  FL_HD int row(int i) const { return row0_ + i * down; }
  FL_HD int column(int j) const { return column0_ + j * across; }

  /// += A B with A (Rows, K), B (K, Columns).
  template <int K, class A, class B>
  FL_HD void multiply(const A& a, const B& b) {
    for (int k = 0; k < K; ++k) {
      float x[rows], y[columns];
      for (int i = 0; i < rows; ++i) x[i] = a.at(whole ? row(i) : row(i) % Rows, k);
      for (int j = 0; j < columns; ++j) y[j] = b.at(k, whole ? column(j) : column(j) % Columns);
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) v[i][j] = std::fma(x[i], y[j], v[i][j]);
    }
  }
  /// f(row, column, value) for each element that is the member's.
  template <class F>
  FL_HD void each(F&& f) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        if (whole || (row(i) < Rows && column(j) < Columns)) f(row(i), column(j), v[i][j]);
  }

 private:
  int row0_, column0_;
};

/// to[r * Stride + c] = from[r * stride + c] for r < rows, c < columns, 0 elsewhere in the tile of Rows x Columns.
template <int Rows, int Columns, int Stride, class Team, class T>
FL_HD inline void load_tile(const Team& team, const T* from, i64 stride, i64 rows, i64 columns, float* to) {
  for (int k = int(team.rank); k < Rows * Columns; k += int(Team::size)) {
    const int r = k / Columns, c = k % Columns;
    to[r * Stride + c] = r < rows && c < columns ? float(from[r * stride + c]) : 0.0f;
  }
}

}  // namespace fusionllm::inline v0
