// SPDX-License-Identifier: Apache-2.0
// Sums of squares of all gradients, bit for bit those of device/sum_of_squares.hpp: a group of members has one block of
// 65,536 elements, a member some of its 16 columns; then the blocks of each parameter are added in order.
#pragma once

#include "update_list.hpp"

namespace fusionllm::inline v0 {

namespace detail {

struct squares_of_pieces {
  update_list list;
  double* sums;  ///< of each piece

  static constexpr u32 columns = u32(sum_of_squares_columns);
  template <u32 Size>
  struct grouping {
    static constexpr u32 lanes = Size < columns ? Size : columns, groups = Size / lanes;
  };
  template <class Team>
  struct shared {
    double column[grouping<Team::size>::groups][columns];
  };

  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& m) const {
    using grouped = grouping<Team::size>;
    const u32 group = team.rank / grouped::lanes, lane = team.rank % grouped::lanes;
    const i64 stretches = (list.pieces + grouped::groups - 1) / grouped::groups;
    each_row(team, stretches, [&](i64 stretch) {
      const i64 piece = stretch * grouped::groups + group;
      if (piece < list.pieces)
        for (u32 c = lane; c < columns; c += grouped::lanes) m.column[group][c] = column_of(piece, c);
      team.wait();
      if (piece < list.pieces && lane == 0) sums[piece] = of_columns(m.column[group]);
      team.wait();
    });
  }

 private:
  FL_HD double column_of(i64 piece, u32 c) const {
    const update_item& p = list.item_of(piece);
    const i64 begin = (piece - p.first_piece) * piece_elements;
    const i64 end = begin + piece_elements < p.count ? begin + piece_elements : p.count;
    double sum = 0;
    for (i64 i = begin + c; i < end; i += columns) sum += double(p.gradient[i]) * double(p.gradient[i]);
    return sum;
  }
  FL_HD static double of_columns(double* column) {
    for (u32 half = columns / 2; half > 0; half /= 2)
      for (u32 i = 0; i < half; ++i) column[i] += column[i + half];
    return column[0];
  }
};

/// out[k]: of item k.
struct squares_of_items {
  update_list list;
  const double* sums;
  double* out;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, list.count, [&](i64 k) {
      double sum = 0;
      const i64 first = list.items[k].first_piece, pieces = pieces_of(list.items[k].count);
      for (i64 p = first; p < first + pieces; ++p) sum += sums[p];
      out[k] = sum;
    });
  }
};

}  // namespace detail

/// out[k] = the sum of squares of item k's gradient. `workspace`: a double for each piece.
template <class Launch>
void sum_of_squares_all(typename Launch::context& c, const update_list& list, double* out, double* workspace) {
  const i64 together = block_size / sum_of_squares_columns;
  Launch::blocks(c, (list.pieces + together - 1) / together, detail::squares_of_pieces{list, workspace},
                 "launch the sums of squares");
  Launch::items(c, list.count, detail::squares_of_items{list, workspace, out}, "launch the sums of squares");
}

}  // namespace fusionllm::inline v0
