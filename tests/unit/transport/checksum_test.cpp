// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/checksum.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;

TEST_CASE("XXH3 as published") {
  CHECK(fl::checksum(fl::bytes_of("")) == 0x2D06800538D394C2ull);  // XXH3_64bits of nothing, seed 0
  CHECK(fl::checksum(fl::bytes_of("a")) != fl::checksum(fl::bytes_of("b")));
}

TEST_CASE("the checksum of parts is that of the whole") {
  const auto data = fusionllm_test::pattern(1000);
  const fl::const_byte_span all(data);
  for (const std::size_t cut : {0u, 1u, 72u, 500u, 1000u}) {
    const fl::const_byte_span parts[] = {all.subspan(cut, (1000 - cut) / 2), all.subspan(cut + (1000 - cut) / 2)};
    CHECK(fl::checksum(all.first(cut), parts) == fl::checksum(all));
  }
}
