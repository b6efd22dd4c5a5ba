// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/path.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("a message takes its bytes over the bandwidth, and the latency") {
  constexpr fl::path p{20 * fl::millisecond, 1'000'000};  // 8 Mbit/s
  static_assert(p.open());
  CHECK(p.occupancy(1'500'000) == 1500 * fl::millisecond);
  CHECK(p.transfer(1'500'000) == 1520 * fl::millisecond);
  CHECK(p.transfer(0) == 20 * fl::millisecond);
}

TEST_CASE("nothing gets through a path without bandwidth") {
  constexpr fl::path p{5, 0};
  CHECK_FALSE(p.open());
  CHECK(p.transfer(0) == fl::never);
  CHECK(p.transfer(1) == fl::never);
  CHECK(p.occupancy(1) == fl::never);
}
