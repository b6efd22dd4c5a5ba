// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/error.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("fail streams its parts and carries its code") {
  try {
    fl::fail(fl::errc::topology, "peer ", 3, ": bandwidth ", 0.5, " Mbps, expected more than 0");
    FAIL("no exception");
  } catch (const fl::error& e) {
    CHECK(e.code() == fl::errc::topology);
    CHECK(std::string(e.what()) == "peer 3: bandwidth 0.5 Mbps, expected more than 0");
  }
  CHECK_THROWS_AS(fl::fail(fl::errc::data, ""), std::runtime_error);
}
