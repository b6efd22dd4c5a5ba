// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/address.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;

TEST_CASE("addresses as users write them") {
  CHECK(fl::parse_address("127.0.0.1:4000") == fl::address{"127.0.0.1", 4000});
  CHECK(fl::parse_address("[::1]:1") == fl::address{"::1", 1});
  CHECK(fl::parse_address("localhost:65535") == fl::address{"localhost", 65535});
  CHECK(fl::parse_address(":0") == fl::address{"localhost", 0});
  CHECK(fl::parse_address("[fe80::1%eth0]:80") == fl::address{"fe80::1%eth0", 80});
  for (const char* text : {"127.0.0.1:4000", "[::1]:1", "gpu-3.example.org:80"})
    CHECK(fl::to_string(fl::parse_address(text)) == text);
}

TEST_CASE("what is no address is an error with the text and an example") {
  for (const char* text : {"", "host", "host:", "host:x", "host:65536", "host:123456", "host:-1", "::1:80", "[::1]",
                           "[::1]80", "[::1", "[]:80", "ho st:80", "http://host:80", "user@host:80", "host:8 0",
                           "\x7f:1"}) {
    INFO(text);
    try {
      fl::parse_address(text);
      FAIL("accepted");
    } catch (const fl::error& e) {
      CHECK(e.code() == fl::errc::network);
      CHECK(contains(e.what(), "'" + std::string(text) + "'"));
      CHECK(contains(e.what(), "such as 127.0.0.1:4000"));
    }
  }
}

TEST_CASE("a loopback address is of no use elsewhere") {
  CHECK_NOTHROW(fl::check_announced({"127.0.0.1", 1}, "127.0.0.1"));
  CHECK_NOTHROW(fl::check_announced({"127.0.0.1", 1}, "::1"));
  CHECK_NOTHROW(fl::check_announced({"192.0.2.1", 1}, "192.0.2.9"));
  CHECK_THROWS_WITH(fl::check_announced({"127.0.0.1", 4000}, "192.0.2.9"),
                    "address 127.0.0.1:4000 is announced to 192.0.2.9, which would reach itself there: listen on an "
                    "address that the other machine can reach (bind), such as 0.0.0.0:0");
  CHECK_THROWS(fl::check_announced({"localhost", 1}, "192.0.2.9"));
  CHECK_THROWS(fl::check_announced({"::1", 1}, "192.0.2.9"));
}
