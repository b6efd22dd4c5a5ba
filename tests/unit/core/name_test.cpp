// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/name.hpp>

#include <string>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("names grow, shrink and compare") {
  fl::name n("h.");
  n.put_number(0);
  n.put_number(1207);
  CHECK(n.view() == "h.01207");
  n.shorten(1);
  CHECK(n.view() == "h");
  CHECK(n == fl::name("h"));
  CHECK(std::string(n.text) == "h");
  CHECK_FALSE(n == fl::name("H"));
}
TEST_CASE("a name holds 63 characters and no more") {
  const std::string most(63, 'x');
  CHECK(fl::name(std::string_view(most)).view() == most);
  CHECK_THROWS(fl::name(std::string_view(most + "x")));
  fl::name n{std::string_view(most)};
  CHECK_THROWS(n.put('y'));
  CHECK_THROWS(n.put("y"));
  CHECK(n.view() == most);
}
