// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/types.hpp>

#include <string>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("every element type has a size and a name") {
  for (const auto t :
       {fl::dtype::f32, fl::dtype::f64, fl::dtype::f16, fl::dtype::bf16, fl::dtype::int32, fl::dtype::int8}) {
    CHECK(fl::size_of(t) > 0);
    CHECK(std::string(fl::name_of(t)) != "?");
  }
  CHECK(fl::size_of(fl::dtype(200)) == 0);
  static_assert(fl::size_of(fl::dtype_of<double>) == 8 && fl::size_of(fl::dtype_of<float>) == 4);
}
