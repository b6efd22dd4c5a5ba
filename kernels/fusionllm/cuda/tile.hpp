// SPDX-License-Identifier: Apache-2.0
// Products of small tiles in shared memory, whose sums lie in the members' registers. On a host and in fp32 a member has
// the rows and columns of its place in a grid of members, strided, so that neighbours read neighbouring memory, and sums
// are fused multiply-adds in ascending order; tensor_part.cuh has tiles of 16-bit numbers for tensor cores.
#pragma once

#include <cmath>

#include <fusionllm/core/half.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

/// E in shared memory, which no constructor initializes.
template <class E>
using tile_element = std::conditional_t<sizeof(E) == 2, u16, E>;

template <class E>
FL_HD inline float from_tile(tile_element<E> raw) {
  if constexpr (sizeof(E) == 2) {
    E e;
    e.bits = raw;
    return float(e);
  } else {
    return raw;
  }
}
template <class E>
FL_HD inline tile_element<E> to_tile(float v) {
  if constexpr (sizeof(E) == 2) return E(v).bits;
  else return v;
}

/// Elements from one row of a tile to the next: odd in fp32, so that members read different banks; what tensor cores
/// can load, of 16 bits.
template <class E>
constexpr int tile_row(int columns) {
  return sizeof(E) == 2 ? columns + 8 : columns + 1;
}
/// The same for fp32 sums that are stored, 16 of them from an aligned place.
constexpr int sum_row(int columns) { return columns + 4; }

/// Element (row, column) of a tile lies at row * Row + column * Column; one of the two is 1.
template <class E, int Row, int Column>
struct tile_view {
  using element = E;
  static constexpr int row = Row, column = Column;
  const tile_element<E>* data;
  FL_HD float at(int r, int c) const { return from_tile<E>(data[r * Row + c * Column]); }
};

/// How many rows of members a team of `size` makes.
constexpr int grid_rows(u32 size) { return size >= 256 ? 16 : size >= 64 ? 8 : size >= 16 ? 4 : size >= 4 ? 2 : 1; }
constexpr int grid_columns(u32 size) { return int(size) / grid_rows(size); }

/// A member's share of a tile of Rows x Columns sums.
template <int Rows, int Columns, u32 Size>
class tile_part {
  static constexpr int across = grid_columns(Size), down = grid_rows(Size);
  static constexpr bool whole = Columns % across == 0 && Rows % down == 0;

 public:
  static constexpr int rows = (Rows + down - 1) / down, columns = (Columns + across - 1) / across;

  FL_HD explicit tile_part(u32 rank) : row0_(int(rank) / across), column0_(int(rank) % across) {}

  /// += A B with A (Rows, K), B (K, Columns).
  template <int K, class A, class B>
  FL_HD void multiply(const A& a, const B& b) {
    for (int k = 0; k < K; ++k) {
      float x[rows], y[columns];
      for (int i = 0; i < rows; ++i) x[i] = a.at(whole ? row(i) : row(i) % Rows, k);
      for (int j = 0; j < columns; ++j) y[j] = b.at(k, whole ? column(j) : column(j) % Columns);
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) v_[i][j] = std::fma(x[i], y[j], v_[i][j]);
    }
  }
  /// f(row, column, value) for each element that is the member's.
  template <class F>
  FL_HD void each(F&& f) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        if (whole || (row(i) < Rows && column(j) < Columns)) f(row(i), column(j), v_[i][j]);
  }

 private:
  FL_HD int row(int i) const { return row0_ + i * down; }
  FL_HD int column(int j) const { return column0_ + j * across; }

  float v_[rows][columns] = {};
  int row0_, column0_;
};

/// The sums of a team: a tile of Rows x Columns, of products of tiles of E.
template <class E, int Rows, int Columns, class Team>
class matrix_part {
 public:
  FL_HD explicit matrix_part(const Team& team) : part_(team.rank) {}
  /// Before `scale_rows`. `scratch`: 256 floats of shared memory, aligned to 32 bytes; all members wait.
  FL_HD void find_rows(const Team&, float*) {}

  /// += A B with A (Rows, K), B (K, Columns), views of tiles.
  template <int K, class A, class B>
  FL_HD void multiply(const A& a, const B& b) {
    part_.template multiply<K>(a, b);
  }
  /// Row r *= factor[r].
  FL_HD void scale_rows(const float* factor) {
    part_.each([&](int r, int, float& v) { v *= factor[r]; });
  }
  /// to[r * Row + c] = ..., in shared memory aligned to 32 bytes.
  template <int Row>
  FL_HD void store(float* to) {
    part_.each([&](int r, int c, float v) { to[r * Row + c] = v; });
  }

 private:
  tile_part<Rows, Columns, Team::size> part_;
};

/// to = rows x columns of `from`, whose rows are `stride` apart, 0 elsewhere in the tile of Rows x Columns.
template <int Rows, int Columns, class Team, class E>
FL_HD inline void load_tile(const Team& team, const E* from, i64 stride, i64 rows, i64 columns, tile_element<E>* to) {
  constexpr int row = tile_row<E>(Columns);
  if (columns % 4 == 0 && stride % 4 == 0 && quad_aligned(from)) {
    for (int k = int(team.rank); k < Rows * Columns / 4; k += int(Team::size)) {
      const int r = k / (Columns / 4), c = k % (Columns / 4) * 4;
      quad<E> q{};
      if (r < rows && c < columns) q = load_quad<true>(from + r * stride, c, columns);
      quad<tile_element<E>> raw;
      for (int j = 0; j < 4; ++j) {
        if constexpr (sizeof(E) == 2) raw.v[j] = q.v[j].bits;
        else raw.v[j] = q.v[j];
      }
      store_quad<row % 4 == 0>(raw, to, r * row + c, Rows * row);
    }
  } else {
    for (int k = int(team.rank); k < Rows * Columns; k += int(Team::size)) {
      const int r = k / Columns, c = k % Columns;
      to[r * row + c] = to_tile<E>(r < rows && c < columns ? float(from[r * stride + c]) : 0.0f);
    }
  }
}

/// The rows x columns of a stored tile that there are: to(row)[c] = scale(row) * value.
template <int Rows, int Columns, class Team, class Place, class Scale>
FL_HD inline void write_tile(const Team& team, const float* from, i64 rows, i64 columns, Place&& to, Scale&& scale) {
  for (int k = int(team.rank); k < Rows * Columns; k += int(Team::size)) {
    const int r = k / Columns, c = k % Columns;
    if (r < rows && c < columns) {
      auto* at = to(r) + c;
      *at = std::remove_pointer_t<decltype(at)>(from[r * sum_row(Columns) + c] * scale(r));
    }
  }
}

}  // namespace fusionllm::inline v0
