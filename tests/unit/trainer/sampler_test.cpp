// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/sampler.hpp>

#include <vector>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;

TEST_CASE("a permutation of every size hits each index once") {
  for (fl::u64 n = 1; n < 300; ++n) {
    const fl::permutation p(7, n, n);
    std::vector<int> hits(n);
    for (fl::u64 i = 0; i < n; ++i) ++hits[p(i)];
    REQUIRE(hits == std::vector<int>(n, 1));
  }
}

TEST_CASE("large domains stay inside") {
  for (fl::u64 n : {fl::u64(1) << 32, (fl::u64(1) << 40) + 1, (fl::u64(1) << 62) + 12345}) {
    const fl::permutation p(1, 2, n);
    for (fl::u64 i : {fl::u64(0), fl::u64(1), n / 2, n - 1}) CHECK(p(i) < n);
    CHECK(p(0) != p(1));
  }
}

TEST_CASE("seed and epoch change the order, nothing else does") {
  const fl::u64 n = 1000;
  auto moved = [&](fl::permutation a, fl::permutation b) {
    int count = 0;
    for (fl::u64 i = 0; i < n; ++i) count += a(i) != b(i);
    return count;
  };
  CHECK(moved({1, 0, n}, {1, 0, n}) == 0);
  CHECK(moved({1, 0, n}, {2, 0, n}) > 950);
  CHECK(moved({1, 0, n}, {1, 1, n}) > 950);
}

TEST_CASE("first places are spread evenly over many epochs") {
  constexpr fl::u64 n = 10;
  std::vector<int> hits(n);
  for (fl::u64 epoch = 0; epoch < 10000; ++epoch) ++hits[fl::permutation(3, epoch, n)(0)];
  for (int h : hits) CHECK(std::abs(h - 1000) < 150);  // five standard deviations
}

TEST_CASE("epochs end in the middle of a batch without losing or repeating a sample") {
  const fl::sampler s(5, 7, 3);
  std::vector<int> hits(7);
  for (fl::u64 position = 0; position < 70; ++position) {
    ++hits[std::size_t(s.sample(position / 3, fl::i64(position % 3)))];
    CHECK(s.epoch_of(position / 3, fl::i64(position % 3)) == position / 7);
    if (position % 7 == 6) CHECK(hits == std::vector<int>(7, int(position / 7) + 1));
  }
}

TEST_CASE("no samples, no rows") {
  using fusionllm_test::error_of;
  CHECK(error_of([] { fl::sampler(1, 0, 1); }).says(fl::errc::data, "holds 0 samples"));
  CHECK(error_of([] { fl::sampler(1, 1, 0); }).says(fl::errc::data, "a batch of 0 rows"));
  CHECK(error_of([] { fl::permutation(1, 1, 0); }).says(fl::errc::data, "0 samples"));
}

static_assert(fl::permutation(1, 2, 1000)(999) < 1000, "usable in constant expressions");
