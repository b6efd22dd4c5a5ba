// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/operator.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

TEST_CASE("traits are an operator's facts as values") {
  const fl::operator_traits& t = fl::traits_of<fl::add_op>;
  CHECK(t.name == "add");
  CHECK((t.elementwise && t.commutes && t.in_place && !t.random && !t.loss));
  CHECK(t.passes_cotangent == 0b11);
  CHECK(t.scalar_f32(fl::scalar_part::value, 2, 3, 0, {}) == 5);
  CHECK(t.scalar_f64(fl::scalar_part::d_second, 2, 3, 7, {}) == 7);
  CHECK(fl::traits_of<fl::linear_op>.scalar_f32 == nullptr);
  CHECK(fl::traits_of<fl::positions_op>.time_limit({{1024, 0, 0}, 0}) == 1024);
  CHECK(fl::traits_of<fl::linear_op>.time_limit({}) == 0);
}
TEST_CASE("an operator that commutes gives the same bits either way") {
  for (const auto* t : {&fl::traits_of<fl::add_op>, &fl::traits_of<fl::multiply_op>})
    for (float x : {0.1f, -3.7f, 1e30f})
      for (float y : {0.3f, 2.9f, -1e-30f})
        CHECK(t->scalar_f32(fl::scalar_part::value, x, y, 0, {}) == t->scalar_f32(fl::scalar_part::value, y, x, 0, {}));
}
TEST_CASE("a loss counts the targets that are not ignored") {
  std::int32_t targets[] = {1, -100, 3, -100};
  fl::op_view v;
  v.in[1] = fl::extents_of<fl::shape<2, 2>>();
  v.attr.n[0] = -100;
  CHECK(fl::traits_of<fl::cross_entropy_op>.counted(v, targets) == 2);
  v.attr.n[0] = 1;
  CHECK(fl::traits_of<fl::cross_entropy_op>.counted(v, targets) == 3);
}
