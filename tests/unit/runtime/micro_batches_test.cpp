// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/micro_batches.hpp>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;

TEST_CASE("rows are cut in order and as evenly as they go") {
  for (int m = 0; m < 4; ++m) CHECK(fl::rows_of(10, 4, m).count() == (m < 2 ? 3 : 2));
  for (i64 rows = 0; rows < 40; ++rows)
    for (int parts = 1; parts < 12; ++parts) {
      i64 at = 0;
      for (int m = 0; m < parts; ++m) {
        const fl::row_range r = fl::rows_of(rows, parts, m);
        CHECK(r.begin == at);
        CHECK(r.count() >= rows / parts);
        CHECK(r.count() <= (rows + parts - 1) / parts);
        at = r.end;
      }
      CHECK(at == rows);
    }
}
