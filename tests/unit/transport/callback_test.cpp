// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/callback.hpp>

#include <array>
#include <memory>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("a callback owns what it captures, small or large, and moves") {
  auto witness = std::make_shared<int>(5);
  fl::callback<int(int)> small([witness](int x) { return *witness + x; });
  fl::callback<int(int)> large([witness, block = std::array<char, 200>{}](int x) { return *witness + x + block[0]; });
  CHECK(witness.use_count() == 3);
  CHECK(small(1) == 6);
  fl::callback<int(int)> moved = std::move(small);
  CHECK_FALSE(small);
  CHECK(moved(2) == 7);
  moved = std::move(large);
  CHECK(witness.use_count() == 2);
  CHECK(moved(3) == 8);
  moved.reset();
  CHECK(witness.use_count() == 1);
}

TEST_CASE("a callback takes move-only captures and arguments") {
  fl::callback<int(std::unique_ptr<int>)> f([p = std::make_unique<int>(1)](std::unique_ptr<int> q) { return *p + *q; });
  CHECK(f(std::make_unique<int>(2)) == 3);
}
