// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/compress/selection.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::u32;

namespace {

constexpr fl::instruction_set every_set[] = {fl::instruction_set::portable, fl::instruction_set::avx2,
                                             fl::instruction_set::avx512};

/// By sorting, with the tie rule spelled out.
std::vector<u32> by_sorting(const float* x, i64 n, i64 k, u32 base = 0) {
  std::vector<u32> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), u32(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return fl::magnitude_key(x[a]) > fl::magnitude_key(x[b]); });
  order.resize(std::size_t(std::clamp<i64>(k, 0, n)));
  std::sort(order.begin(), order.end());
  for (u32& p : order) p += base;
  return order;
}

enum class kind { normal, equal, zero, few_values, denormal, signed_zeros, wide, spike, ascending };

std::vector<float> data(kind what, i64 n, unsigned seed) {
  std::mt19937 g(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const unsigned word = unsigned(g());
    switch (what) {
      case kind::normal:
        x[i] = normal(g);
        break;
      case kind::equal:
        x[i] = (word & 1) ? 1.5f : -1.5f;
        break;
      case kind::zero:
        x[i] = 0;
        break;
      case kind::few_values:
        x[i] = float(int(word % 5) - 2);
        break;
      case kind::denormal:
        x[i] = std::bit_cast<float>(word & 0x800FFFFFu);
        break;
      case kind::signed_zeros:
        x[i] = (word & 1) ? 0.0f : -0.0f;
        break;
      case kind::wide:
        x[i] = std::bit_cast<float>(word % 0x7F800000u | (word & 0x80000000u));
        break;
      case kind::spike:
        x[i] = i == x.size() / 3 ? 1e30f : 1e-30f * float(word % 7);
        break;
      case kind::ascending:
        x[i] = float(i);
        break;
    }
  }
  return x;
}

constexpr kind kinds[] = {kind::normal, kind::equal,        kind::zero,  kind::few_values, kind::denormal,
                          kind::wide,   kind::signed_zeros, kind::spike, kind::ascending};

void compare(const std::vector<float>& x, i64 k, fl::thread_team* team) {
  const i64 n = i64(x.size());
  const auto expected = by_sorting(x.data(), n, k);
  for (auto set : every_set) {
    fl::top_k_selector selector(set);
    std::vector<u32> positions(3, 7);
    selector.select(x.data(), n, k, team, positions);
    REQUIRE(positions == expected);
  }
}

}  // namespace

TEST_CASE("the selection is that of a stable sort, for every kind of data, n and k") {
  for (kind what : kinds)
    for (i64 n : {0, 1, 2, 15, 16, 17, 63, 64, 65, 100, 257, 1000})
      for (i64 k : {i64(0), i64(1), i64(2), n / 10, n / 3, n / 2, n - 1, n, n + 1, 5 * n + 3})
        if (k >= 0) compare(data(what, n, unsigned(n + k)), k, nullptr);
}

TEST_CASE("large inputs, by sampling and by counting, with any number of threads") {
  for (int threads : {1, 2, 3}) {
    fl::thread_team team(threads);
    for (kind what : kinds)
      for (i64 n : {i64(1) << 15, i64(50'001)})
        for (i64 k : {i64(1), n / 1000, n / 100, n / 9, n / 3, n - 1}) compare(data(what, n, 5), k, &team);
  }
}

TEST_CASE("all large values in one thread's part, and values that hide from the sample") {
  fl::thread_team team(2);
  auto x = data(kind::normal, 200'000, 1);
  for (std::size_t i = 0; i < 3000; ++i) x[i] *= 1000;
  compare(x, 2000, &team);
  compare(x, 3000, &team);
  std::fill(x.begin(), x.end(), 0.0f);
  for (std::size_t i = 0; i < 50; ++i) x[199'000 + 7 * i] = float(i + 1);
  for (i64 k : {1, 49, 50, 51, 500}) compare(x, k, &team);
}

TEST_CASE("a sample that sees large values only misleads nobody") {
  fl::thread_team team(2);
  auto x = data(kind::normal, 200'000, 2);
  fl::u64 at = 0;  // the positions that the selector samples
  for (int i = 0; i < 1 << 14; ++i) x[((at += 0x9E3779B97F4A7C15u) >> 32) * x.size() >> 32] += 100.0f;
  for (i64 k : {1000, 20'000, 25'000}) compare(x, k, &team);
}

TEST_CASE("rows are selected each by itself") {
  fl::thread_team team(2);
  for (kind what : kinds)
    for (i64 columns : {1, 5, 16, 64, 100, 256, 1000, 4096}) {
      const i64 rows = 9;
      const auto x = data(what, rows * columns, unsigned(columns));
      for (i64 k : {i64(0), i64(1), columns / 10, columns / 2, columns, columns + 1}) {
        std::vector<u32> expected;
        for (i64 r = 0; r < rows; ++r) {
          const auto row = by_sorting(x.data() + r * columns, columns, k, u32(r * columns));
          expected.insert(expected.end(), row.begin(), row.end());
        }
        for (auto set : every_set) {
          fl::top_k_selector selector(set);
          std::vector<u32> positions;
          selector.select_rows(x.data(), rows, columns, k, nullptr, positions);
          REQUIRE(positions == expected);
          selector.select_rows(x.data(), rows, columns, k, &team, positions);
          REQUIRE(positions == expected);
        }
      }
    }
}

TEST_CASE("infinities and NaNs come first, and the first of them is found") {
  auto x = data(kind::normal, 1000, 3);
  CHECK(fl::first_non_finite(x.data(), 1000) == -1);
  x[999] = std::numeric_limits<float>::infinity();
  x[500] = -std::numeric_limits<float>::quiet_NaN();
  for (auto set : every_set) {
    CHECK(fl::first_non_finite(x.data(), 1000, set) == 500);
    CHECK(fl::first_non_finite(x.data(), 500, set) == -1);
  }
  compare(x, 2, nullptr);
}

TEST_CASE("a cut is exact from any guess") {
  const auto x = data(kind::normal, 300, 8);
  for (u32 guess : {0u, 1u, 0x3F800000u, 0x7F7FFFFFu, 0x7FFFFFFFu, 0xFFFFFFFFu})
    for (i64 k = 1; k < 300; k += 7) {
      const auto count = [&](u32 key) {
        return fl::scan_with(fl::instruction_set::portable).count(x.data(), 300, key);
      };
      const u32 largest = fl::scan_with(fl::instruction_set::portable).largest(x.data(), 300);
      const auto cut = fl::find_cut(count, 300, k, largest, guess);
      CHECK(count(cut.key + 1) + cut.ties == k);
    }
}
