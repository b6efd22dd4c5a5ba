// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/skipping.hpp>

#include <limits>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

TEST_CASE("the mean is of the last accepted losses; skipped ones do not count") {
  fl::loss_history h;
  CHECK(h.mean() == 0);
  for (int i = 0; i < 15; ++i) h.add(2, false);
  CHECK(!h.is_spike(1e9, 2));  // not enough of them
  h.add(4, false);
  CHECK(h.mean() == 34.0 / 16);
  CHECK(h.is_spike(4.26, 2));
  CHECK(!h.is_spike(4.25, 2));
  CHECK(!h.is_spike(1e9, 0));
  h.add(1e9, true);
  h.add(1e9, true);
  CHECK(h.mean() == 34.0 / 16);
  CHECK(h.skipped_in_row() == 2);
  for (int i = 0; i < 16; ++i) h.add(1, false);
  CHECK(h.mean() == 1);
  CHECK(h.skipped_in_row() == 0);
}

TEST_CASE("no loss is a spike where the mean is not above 0") {
  for (const double level : {0.0, -3.0}) {
    fl::loss_history h;
    for (int i = 0; i < 16; ++i) h.add(level, false);
    CHECK(!h.is_spike(1e-30, 2));
    CHECK(!h.is_spike(-5, 2));
  }
}

TEST_CASE("a history goes on from its numbers, and numbers that none has are refused") {
  fl::loss_history h;
  for (int i = 0; i < 21; ++i) h.add(0.1 * i, i % 5 == 0);
  h.add(7, true);
  auto s = h.numbers();
  CHECK(fl::loss_history::from(s, fl::errc::checkpoint) == h);
  CHECK(fl::loss_history::from(fl::loss_history{}.numbers(), fl::errc::checkpoint) == fl::loss_history{});
  s[1] = 17;
  CHECK(error_of([&] { fl::loss_history::from(s, fl::errc::protocol); }).code == fl::errc::protocol);
  s = h.numbers();
  s[0] = -1;
  CHECK(error_of([&] { fl::loss_history::from(s, fl::errc::protocol); }).code == fl::errc::protocol);
  s = h.numbers();
  s[2] = std::numeric_limits<double>::infinity();
  CHECK(error_of([&] { fl::loss_history::from(s, fl::errc::checkpoint); }).code == fl::errc::checkpoint);
  CHECK(error_of([&] { fl::loss_history::from(std::span(s).first(3), fl::errc::checkpoint); }).code == fl::errc::checkpoint);
}
