// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/philox.hpp>

#include <set>
#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::u32;
using fl::u64;

TEST_CASE("Philox 4x32-10 gives the known answers of its authors' library") {
  auto check = [](const fl::philox_block& b, u32 v0, u32 v1, u32 v2, u32 v3) {
    CHECK(b.v[0] == v0);
    CHECK(b.v[1] == v1);
    CHECK(b.v[2] == v2);
    CHECK(b.v[3] == v3);
  };
  check(fl::philox({0, 0, 0, 0}, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  check(fl::philox({~u64(0), 0xffffffff, 0, 0xffffffff}, ~u64(0)), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  check(fl::philox({0x299f31d0a4093822, 0x03707344, 0, 0x13198a2e}, 0x85a308d3243f6a88), 0xd16cfe09, 0x94fdcceb,
        0x5001e420, 0x24126ea1);
}
TEST_CASE("many words at once are the words one by one") {
  for (const u64 first : {u64(0), u64(4), u64(1) << 33, (u64(1) << 34) - 8})
    for (const int n : {4, 8, 32, 64, 100}) {
      std::vector<u32> words(std::size_t(n), 0);
      const fl::random_key key{7, u64(5) << 32 | 9, 3, 11};
      fl::random_words(words.data(), n, key, first);
      for (int i = 0; i < n; ++i) CHECK(words[std::size_t(i)] == fl::random_word(key, first + u64(i)));
    }
}
TEST_CASE("each part of a key, and the index, changes the words") {
  const fl::random_key base{1, 2, 3, 4};
  std::set<u32> words{fl::random_word(base, 0),         fl::random_word({2, 2, 3, 4}, 0),
                      fl::random_word({1, 3, 3, 4}, 0), fl::random_word({1, 2, 4, 4}, 0),
                      fl::random_word({1, 2, 3, 5}, 0), fl::random_word(base, 1),
                      fl::random_word(base, 4),         fl::random_word({1, 2 + (u64(1) << 32), 3, 4}, 0)};
  CHECK(words.size() == 8);
}
TEST_CASE("uniform numbers are in [0, 1)") {
  CHECK(fl::uniform(0) == 0.0f);
  CHECK(fl::uniform(0xffffffff) < 1.0f);
  double sum = 0;
  for (u64 i = 0; i < 100000; ++i) sum += double(fl::uniform(fl::random_word({1, 0, 0, 0}, i)));
  CHECK(std::abs(sum / 100000 - 0.5) < 5 * 0.2887 / 316.2);
}
