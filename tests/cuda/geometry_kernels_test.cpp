// SPDX-License-Identifier: Apache-2.0
// Launch geometry, workspaces and shared memory of the GPU's kernels are functions that a compiler can evaluate: for one
// element, odd sizes, and more than 2^31 elements.
#include <fusionllm/cuda/operators.hpp>

#include "barrier_team.hpp"
#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::u64;

namespace {

constexpr i64 many = (i64(1) << 33) + 7;

// Parts cover all rows and none is empty.
constexpr bool covers(i64 rows) {
  const i64 each = fl::rows_in_part(rows), parts = fl::parts_of_rows(rows);
  return each * parts >= rows && each * (parts - 1) < rows && parts <= 128;
}
static_assert(covers(1) && covers(31) && covers(32) && covers(33) && covers(4096) && covers(4097) && covers(8191));
static_assert(covers(many) && fl::parts_of_rows(0) == 0);
static_assert(fl::row_totals_workspace<2>(1, 1) == 2 && fl::row_totals_workspace<2>(33, 768) == 2 * 2 * 768);
static_assert(fl::row_totals_workspace<1>(many, 1 << 20) <= u64(128) << 20);

static_assert(fl::parts_of_total(1) == 1 && fl::parts_of_total(4096) == 1 && fl::parts_of_total(4097) == 2);
static_assert(fl::parts_of_total(many) == 512 && fl::total_workspace(0) == 1);

static_assert(fl::pieces_of(0) == 0 && fl::pieces_of(1) == 1 && fl::pieces_of(65536) == 1 && fl::pieces_of(65537) == 2);
static_assert(fl::pieces_of(many) == (many >> 16) + 1);
constexpr bool pieces_follow() {
  fl::update_item items[4];
  items[0].count = 1, items[1].count = 0, items[2].count = many, items[3].count = 65537;
  const i64 pieces = fl::place_pieces(items);
  return items[1].first_piece == 1 && items[2].first_piece == 1 && items[3].first_piece == 1 + fl::pieces_of(many)
         && pieces == items[3].first_piece + 2;
}
static_assert(pieces_follow());

static_assert(fl::padded_width(1) == 64 && fl::padded_width(64) == 64 && fl::padded_width(65) == 128);
static_assert(fl::padded_width(fl::widest_head) == 256);

/// Tiles of every size of team, the GPU's 256 included: each element of a tile belongs to one member.
template <int Rows, int Columns, fl::u32 Size>
bool partitions() {
  std::vector<int> owners(Rows * Columns);
  for (fl::u32 rank = 0; rank < Size; ++rank) {
    fl::tile_part<Rows, Columns, Size> part(rank);
    part.each([&](int r, int c, float) { ++owners[std::size_t(r * Columns + c)]; });
  }
  for (int n : owners)
    if (n != 1) return false;
  return true;
}

/// A block has 48 KiB; a few of them are for sums over its members.
struct block_sized {
  static constexpr fl::u32 size = fl::block_size;
};
template <class Body>
constexpr bool fits = sizeof(typename Body::template shared<block_sized>) <= 45 * 1024;
static_assert(fits<fl::detail::attention_forward<float, 64>> && fits<fl::detail::attention_forward<float, 128>>);
static_assert(fits<fl::detail::attention_forward<float, 256>>);
static_assert(fits<fl::detail::attention_query_cotangent<float, 64>>);
static_assert(fits<fl::detail::attention_query_cotangent<float, 128>>);
static_assert(fits<fl::detail::attention_query_cotangent<float, 256>>);
static_assert(fits<fl::detail::attention_key_cotangent<float, 64>>);
static_assert(fits<fl::detail::attention_key_cotangent<float, 128>>);
static_assert(fits<fl::detail::attention_key_cotangent<float, 256>>);
static_assert(fits<fl::detail::embedding_gradient<float>> && fits<fl::detail::squares_of_pieces>);

}  // namespace

TEST_CASE("every element of a tile belongs to one member") {
  CHECK(partitions<64, 32, 256>());
  CHECK(partitions<64, 64, 256>());
  CHECK(partitions<32, 16, 256>());
  CHECK(partitions<16, 8, 256>());  // fewer columns than the grid of members has
  CHECK(partitions<8, 8, 256>());   // ... and fewer rows
  CHECK(partitions<8, 256, 256>());
  CHECK(partitions<64, 32, 64>());
  CHECK(partitions<64, 32, 32>());
  CHECK(partitions<64, 32, 1>());
}

TEST_CASE("members of teams share all items between them, each once") {
  for (i64 n : {0, 1, 2, 7, 100}) {
    std::vector<int> seen(std::size_t(n) + 1);
    seam::host_launch::run(3, [&](auto team) { fl::each_item(team, n, [&](i64 i) { ++seen[std::size_t(i)]; }); });
    seam::barrier_launch<4>::run(2, [&](auto team) { fl::each_item(team, n, [&](i64 i) { ++seen[std::size_t(i)]; }); });
    for (i64 i = 0; i < n; ++i) CHECK(seen[std::size_t(i)] == 2);
    CHECK(seen.back() == 0);
  }
}
