// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/fnv.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("FNV-1a of bytes gives the known answers") {
  auto hash = [](std::string_view s) {
    fl::fnv h;
    for (char c : s) h.byte(fl::u8(c));
    return h.value();
  };
  CHECK(hash("") == 0xcbf29ce484222325);
  CHECK(hash("a") == 0xaf63dc4c8601ec8c);
  CHECK(hash("foobar") == 0x85944171f73967e8);
}
TEST_CASE("texts are told apart from their concatenation") {
  CHECK(fl::fnv().text("ab").text("c").value() != fl::fnv().text("a").text("bc").value());
  static_assert(fl::fnv().text("x").number(1).value() != fl::fnv().text("x").number(2).value());
}
