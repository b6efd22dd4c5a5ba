// SPDX-License-Identifier: Apache-2.0
// All parameters of a peer as one list, so that an update, or the sums of squares of all gradients, are one launch. The
// list lies in device memory; pieces are what teams take.
#pragma once

#include <span>

#include <fusionllm/core/half.hpp>
#include <fusionllm/device/sum_of_squares.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

/// One parameter, in device memory. `m` and `v`: of AdamW; sgd has `m` only. `rounded`: where the new weights are also
/// written as bf16; null: nowhere.
struct update_item {
  float* weight = nullptr;
  const float* gradient = nullptr;
  float *m = nullptr, *v = nullptr;
  bfloat16* rounded = nullptr;
  i64 count = 0;
  bool decays = false;
  i64 first_piece = 0;  ///< set by `place_pieces`
};

/// Elements of a piece: a block of `sum_of_squares`. Updates share a piece among several teams.
inline constexpr i64 piece_elements = sum_of_squares_block;
inline constexpr i64 shares_of_piece = 16;

constexpr i64 pieces_of(i64 count) { return count / piece_elements + (count % piece_elements != 0); }

/// Numbers the pieces of all items; returns how many there are.
constexpr i64 place_pieces(std::span<update_item> items) {
  i64 pieces = 0;
  for (update_item& i : items) {
    i.first_piece = pieces;
    pieces += pieces_of(i.count);
  }
  return pieces;
}

/// The list as a kernel takes it.
struct update_list {
  const update_item* items = nullptr;  ///< in device memory
  i64 count = 0, pieces = 0;

  /// Of 0 .. pieces - 1. Empty items have no pieces.
  FL_HD const update_item& item_of(i64 piece) const {
    i64 low = 0, high = count;
    while (high - low > 1) {
      const i64 middle = (low + high) / 2;
      if (items[middle].first_piece <= piece) low = middle;
      else high = middle;
    }
    return items[low];
  }
};

namespace detail {

/// Calls f(item, begin, end) for the team's shares of all items.
template <class Team, class F>
FL_HD inline void each_share(const Team& team, const update_list& list, F&& f) {
  constexpr i64 length = piece_elements / shares_of_piece;
  each_row(team, list.pieces * shares_of_piece, [&](i64 share) {
    const update_item& item = list.item_of(share / shares_of_piece);
    const i64 begin = (share / shares_of_piece - item.first_piece) * piece_elements + share % shares_of_piece * length;
    const i64 end = begin + length < item.count ? begin + length : item.count;
    if (begin < end) f(item, begin, end);
  });
}

}  // namespace detail

}  // namespace fusionllm::inline v0
