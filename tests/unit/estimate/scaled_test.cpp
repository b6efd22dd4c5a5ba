// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/scaled.hpp>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::u64;

static_assert(fl::scaled(10, 10, 7) == 15, "rounds up");
static_assert(fl::scaled(0, 5, 0) == 0 && fl::scaled(1, 5, 0) == fl::never, "by zero");

TEST_CASE("scaled rounds up and never overflows") {
  CHECK(fl::scaled(7, 3, 21) == 1);
  CHECK(fl::scaled(7, 3, 22) == 1);
  CHECK(fl::scaled(7, 3, 20) == 2);
  CHECK(fl::scaled(u64(1) << 40, u64(1) << 40, u64(1) << 50) == fl::i64(1) << 30);
  CHECK(fl::scaled(~u64(0), ~u64(0), ~u64(0)) == fl::never);
  CHECK(fl::scaled(~u64(0), ~u64(0), 1) == fl::never);
  CHECK(fl::scaled(~u64(0), 1, ~u64(0)) == 1);
}

TEST_CASE("sums of durations stop at never") {
  CHECK(fl::plus(1, 2) == 3);
  CHECK(fl::plus(fl::never, 5) == fl::never);
  CHECK(fl::plus(fl::never, fl::never) == fl::never);
}
