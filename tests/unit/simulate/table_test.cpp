// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/simulate/table.hpp>

#include "catch.hpp"

TEST_CASE("columns are as wide as their widest entry, numbers to the right") {
  fusionllm::text_table t({"name", ">ms", "note"});
  CHECK(t.empty());
  t.row({"a", "1.50"}).row({"longer", "120.25", "x"});
  CHECK(t.text() == "name        ms  note\na         1.50\nlonger  120.25  x\n");
  CHECK_FALSE(t.empty());
}
