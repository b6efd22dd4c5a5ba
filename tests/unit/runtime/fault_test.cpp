// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/fault.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("faults have one order: micro-batch, forward before backward, order of running, gradients last") {
  using kind = fl::fault_kind;
  const fl::fault in_order[] = {{kind::activation, 0, 3, fl::fault::no, 0}, {kind::activation, 0, 9, fl::fault::no, 1},
                                {kind::loss, 0, 12, fl::fault::no, 1},      {kind::cotangent, 0, 9, fl::fault::no, 1},
                                {kind::cotangent, 0, 3, fl::fault::no, 0},  {kind::activation, 1, 2, fl::fault::no, 0},
                                {kind::gradient, fl::fault::no, 2, 4, 0},   {kind::gradient, fl::fault::no, 5, 1, 0},
                                {}};
  for (std::size_t i = 0; i < std::size(in_order); ++i)
    for (std::size_t j = 0; j < std::size(in_order); ++j) CHECK(fl::earlier(in_order[i], in_order[j]) == (i < j));
}

TEST_CASE("a fault comes back as it was, and unknown kinds are faults too") {
  const fl::fault f{fl::fault_kind::gradient, fl::fault::no, 7, 3, 2};
  std::byte bytes[fl::fault::bytes];
  f.encode(bytes);
  CHECK(fl::fault::decode(bytes) == f);
  bytes[0] = std::byte(200);
  CHECK(bool(fl::fault::decode(bytes)));
}
