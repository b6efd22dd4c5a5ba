// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/clock.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("a manual clock moves only when told") {
  fl::manual_clock c;
  const fl::clock& seen = c;
  CHECK(seen.now() == 0);
  c.advance(3 * fl::second);
  CHECK(seen.now() == 3 * fl::second);
  c.set(5);
  CHECK(seen.now() == 5);
}

TEST_CASE("the machine's clock never goes back") {
  fl::machine_clock c;
  fl::nanoseconds last = c.now();
  for (int i = 0; i < 1000; ++i) {
    const fl::nanoseconds next = c.now();
    REQUIRE(next >= last);
    last = next;
  }
}
