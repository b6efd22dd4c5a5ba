// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/buffer_pool.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("the smallest idle buffer that suffices is taken, else the largest grows") {
  fl::buffer_pool p;
  const int a = p.take(100), b = p.take(1000), c = p.take(10);
  CHECK(p.busy() == 3);
  CHECK(p.size() == 3);
  for (int i : {a, b, c}) p.give_back(i);
  CHECK(p.busy() == 0);
  CHECK(p.take(50) == a);
  CHECK(p.take(50) == b);   // a is busy, c too small
  CHECK(p.take(5000) == c);
  CHECK(p[c].capacity() >= 5000);
  p.give_back(a);
  p.give_back(b);
  CHECK(p.take(2000) == b);  // the larger of the two that are too small
  CHECK(p.size() == 3);
}

TEST_CASE("buffers do not move while others come, and have room for what was asked") {
  fl::buffer_pool p;
  const int first = p.take(64);
  const auto* at = &p[first];
  const auto* memory = p[first].data();
  for (int i = 0; i < 100; ++i) CHECK(p[p.take(std::size_t(i) * 10)].capacity() >= std::size_t(i) * 10);
  CHECK(&p[first] == at);
  CHECK(p[first].data() == memory);
}
