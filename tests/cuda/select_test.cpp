// SPDX-License-Identifier: Apache-2.0
// The bodies of the GPU's top-k, run here by teams of one, keep exactly what the CPU's selection keeps: ties to the
// lowest position, any input, any k.
#include <fusionllm/cuda/select.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "barrier_team.hpp"
#include "catch.hpp"
#include "node_run.hpp"

namespace fl = fusionllm;
using fl::u32;
using fl::u64;

namespace {

struct kept {
  std::vector<u32> positions;
  std::vector<float> values;
  bool non_finite;
};

/// What top_k.cuh launches, one team after another; the sums over tiles are CUB's there.
template <class Launch>
kept select_by(const std::vector<float>& x, fl::i64 k, u32 teams) {
  const fl::i64 n = fl::i64(x.size());
  fl::selection_state state{0, u32(k), 0};
  std::vector<u32> counts(fl::digit_values, 0), local(fl::digit_values);
  for (int pass = 0; pass < fl::digit_passes; ++pass) {
    Launch::run(teams, [&](auto team) {
      fl::count_digits(team, x.data(), n, state, pass, local.data(), counts.data());
    });
    Launch::run(1, [&](auto team) { fl::pick_digit(team, counts.data(), pass, state); });
  }
  const u32 tiles = fl::tiles_of(n, Launch::size);
  std::vector<u64> sums(tiles + 1, 0);
  Launch::run(tiles, [&](auto team) { fl::count_tile(team, x.data(), n, state, sums.data()); });
  std::exclusive_scan(sums.begin(), sums.end(), sums.begin(), u64(0));
  kept r{std::vector<u32>(std::size_t(k), ~0u), std::vector<float>(std::size_t(k)), state.non_finite != 0};
  Launch::run(tiles, [&](auto team) {
    fl::keep_tile(team, x.data(), n, k, state, sums.data(), r.positions.data(), r.values.data());
  });
  return r;
}

/// The definition.
std::vector<u32> expected(const std::vector<float>& x, fl::i64 k) {
  std::vector<u32> order(x.size());
  std::iota(order.begin(), order.end(), u32(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return fl::magnitude_key(x[a]) > fl::magnitude_key(x[b]); });
  order.resize(std::size_t(k));
  std::sort(order.begin(), order.end());
  return order;
}

void check_all_k(const std::vector<float>& x) {
  const fl::i64 n = fl::i64(x.size());
  for (fl::i64 k : {fl::i64(1), fl::i64(2), n / 100, n / 3, n - 1, n}) {
    if (k < 1 || k > n) continue;
    INFO("k " << k << " of " << n);
    const kept found = select_by<seam::host_launch>(x, k, 3);
    CHECK(found.positions == expected(x, k));
    if (k == n / 3) CHECK(select_by<seam::barrier_launch<8>>(x, k, 2).positions == found.positions);
    for (std::size_t i = 0; i < found.positions.size(); ++i)
      REQUIRE(fl::magnitude_key(found.values[i]) == fl::magnitude_key(x[found.positions[i]]));
    CHECK_FALSE(found.non_finite);
  }
}

}  // namespace

TEST_CASE("selection by teams: lengths around quads and tiles") {
  for (std::size_t n : {1u, 2u, 3u, 4u, 5u, 31u, 32u, 33u, 63u, 64u, 65u, 1000u}) check_all_k(seam::drawn(n, u32(n)));
}

TEST_CASE("selection by teams: ties go to the lowest position") {
  std::vector<float> x = seam::drawn(777, 3);
  for (float& v : x) v = std::round(v);  // five magnitudes with signs
  check_all_k(x);
  check_all_k(std::vector<float>(500, -1.5f));
  check_all_k(std::vector<float>(100, 0.f));
}

TEST_CASE("selection by teams: keys that differ in the last digit only, denormals, both zeros") {
  std::vector<float> x;
  for (u32 i = 0; i < 600; ++i) x.push_back(std::bit_cast<float>(0x3F800000u + (i * 7919u) % 1024));
  check_all_k(x);
  for (u32 i = 0; i < 600; ++i) x[i] = std::bit_cast<float>((i * 7919u) % 512 | (i % 2) << 31);
  check_all_k(x);
  x[5] = std::numeric_limits<float>::max();
  check_all_k(x);
}

TEST_CASE("selection by teams: infinities and NaNs are reported") {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x = seam::drawn(200, 4);
    x[123] = bad;
    const kept found = select_by<seam::host_launch>(x, 5, 2);
    CHECK(found.non_finite);
    CHECK(found.positions == expected(x, 5));
  }
}
