// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/micro_batches.hpp>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;

TEST_CASE("the first micro-batches are filled first") {
  for (i64 rows = 0; rows < 12; ++rows)
    for (int m = 0; m < 5; ++m) CHECK((fl::rows_of(rows, 5, m).count() > 0) == (m < fl::filled(rows, 5)));
}

TEST_CASE("what is kept of a running statistic, and the shares of the micro-batches, add up to one") {
  CHECK(fl::kept(0.1, 0) == 1);
  CHECK(fl::kept(0.1, 3) == Approx(0.729));
  double sum = fl::kept(0.1, 7);
  for (int m = 0; m < 7; ++m) sum += 0.1 * fl::kept(0.1, 7 - 1 - m);
  CHECK(sum == Approx(1));
  CHECK(fl::kept(0, 5) == 1);
  CHECK(fl::kept(1, 1) == 0);
}

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
