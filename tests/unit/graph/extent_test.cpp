// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/extent.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("symbolic shapes become concrete") {
  constexpr fl::extents e = fl::extents_of<fl::shape<fl::batch, fl::time, 384>>();
  CHECK(e.symbolic());
  const fl::extents r = e.resolve({3, 5});
  CHECK_FALSE(r.symbolic());
  CHECK(r.count() == 3 * 5 * 384);
  CHECK(r.rows() == 15);
  CHECK(r.last() == 384);
}
TEST_CASE("shapes of one extent and of none") {
  const fl::extents one = fl::extents_of<fl::shape<7>>();
  CHECK(one.rows() == 1);
  CHECK(one.count() == 7);
  const fl::extents none{};
  CHECK(none.count() == 1);
  CHECK(none.rows() == 1);
  fl::extents empty = one;
  empty.d[0] = 0;
  CHECK(empty.count() == 0);
  CHECK(empty.rows() == 0);
}
static_assert(std::is_same_v<fl::with_last<fl::shape<fl::batch, 4>, 9>, fl::shape<fl::batch, 9>>);
static_assert(std::is_same_v<fl::with_last<fl::shape<4>, 9>, fl::shape<9>>);
