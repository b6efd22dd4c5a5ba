// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/augment.hpp>

#include <map>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("shifts are uniform in their range, every other picture is mirrored, all three alone") {
  const fl::augmentation a{.padding = 4, .flip = true};
  std::map<fl::i64, int> down, right;
  std::map<std::pair<fl::i64, bool>, int> together;
  const int n = 90000;
  int mirrored = 0;
  for (int i = 0; i < n; ++i) {
    const auto c = fl::draw_augmentation(a, 7, 3, fl::u64(i));
    ++down[c.dy], ++right[c.dx];
    mirrored += c.mirrored;
    ++together[{c.dy, c.mirrored}];
  }
  for (const auto* seen : {&down, &right}) {
    REQUIRE(seen->size() == 9);
    CHECK(seen->begin()->first == -4);
    CHECK(seen->rbegin()->first == 4);
    for (auto [offset, count] : *seen) CHECK(std::abs(count - n / 9) < 500);  // 5 deviations
  }
  CHECK(std::abs(mirrored - n / 2) < 750);
  CHECK(together.size() == 18);
  for (auto [what, count] : together) CHECK(std::abs(count - n / 18) < 350);
}

TEST_CASE("a draw depends on seed, epoch and picture, and on nothing else") {
  const fl::augmentation a;
  const auto same = [](fl::crop_flip x, fl::crop_flip y) { return x.dy == y.dy && x.dx == y.dx && x.mirrored == y.mirrored; };
  int equal[3] = {};
  for (fl::u64 i = 0; i < 1000; ++i) {
    const auto c = fl::draw_augmentation(a, 1, 2, i);
    CHECK(same(c, fl::draw_augmentation(a, 1, 2, i)));
    equal[0] += same(c, fl::draw_augmentation(a, 2, 2, i));
    equal[1] += same(c, fl::draw_augmentation(a, 1, 3, i));
    equal[2] += same(c, fl::draw_augmentation(a, 1, 2, i + 1));
  }
  for (int e : equal) CHECK(e < 25);  // 6 are expected
  // Part of what a seed means: a later version must draw the same. From Philox 4x32-10 written in Python.
  CHECK(same(fl::draw_augmentation(a, 1, 0, 0), {-4, -2, true}));
  CHECK(same(fl::draw_augmentation(a, 1, 0, 1), {1, 3, true}));
  CHECK(same(fl::draw_augmentation(a, 7, 2, 59999), {2, 1, false}));
}

TEST_CASE("without padding and flip nothing changes") {
  for (fl::u64 i = 0; i < 100; ++i) {
    const auto c = fl::draw_augmentation({.padding = 0, .flip = false}, 1, 0, i);
    CHECK((c.dy == 0 && c.dx == 0 && !c.mirrored));
  }
}
