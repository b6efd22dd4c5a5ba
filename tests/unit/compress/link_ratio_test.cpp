// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/compress/link_ratio.hpp>

#include <limits>
#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::link_load;
using fl::millisecond;

TEST_CASE("the slowest link gets the user's ratio, the others what they need to keep up") {
  const std::vector<link_load> links = {
      {0, 1000 * millisecond}, {0, 100 * millisecond}, {0, 300 * millisecond}, {5 * millisecond, 200 * millisecond}};
  const auto target = fl::link_target(links, 10 * millisecond, 10'000);
  CHECK(target == 100 * millisecond);
  CHECK(fl::link_ratio(links[0], target, 10'000) == 10'000);
  CHECK(fl::link_ratio(links[1], target, 10'000) == 1000);  // meets it as it is
  CHECK(fl::link_ratio(links[2], target, 10'000) == 3000);
  CHECK(fl::link_ratio(links[3], target, 10'000) == 2106);  // 200 / 95, rounded up
}

TEST_CASE("nothing is compressed past the slowest compute") {
  const std::vector<link_load> links = {{0, 1000 * millisecond}, {0, 200 * millisecond}};
  const auto target = fl::link_target(links, 500 * millisecond, 100'000);
  CHECK(target == 500 * millisecond);
  CHECK(fl::link_ratio(links[0], target, 100'000) == 2000);
  CHECK(fl::link_ratio(links[1], target, 100'000) == 1000);
}

TEST_CASE("a link meets the target with its ratio, for loads of every size") {
  fl::u64 state = 1;
  const auto draw = [&](int bits) { return fl::i64((state = state * 6364136223846793005u + 1) >> (64 - bits)); };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<link_load> links;
    for (int i = 0; i < 4; ++i) links.push_back({draw(1 + round % 40), draw(1 + (round * 7 + i) % 50)});
    const fl::i64 user = 1000 + draw(1 + round % 20);
    const auto target = fl::link_target(links, draw(1 + round % 45), user);
    for (const auto& link : links) {
      const fl::i64 r = fl::link_ratio(link, target, user);
      CHECK((r >= 1000 && r <= user));
      const double at_ratio = double(link.latency) + 1000.0 * double(link.transfer) / double(r);
      CHECK(at_ratio <= double(target) * (1 + 1e-12) + 1);
      if (r > 1000)
        CHECK(double(link.latency) + 1000.0 * double(link.transfer) / double(r - 1) >= double(target) * (1 - 1e-12));
    }
  }
}

TEST_CASE("ends: no links, ratios up to 1, latency above everything, absurd times") {
  CHECK(fl::link_target({}, 7, 5000) == 7);
  CHECK(fl::link_target({}, -1, 5000) == 0);
  CHECK(fl::link_ratio({0, 100}, 1, 0) == 1000);
  CHECK(fl::link_ratio({50, 100}, 10, 4000) == 4000);
  CHECK(fl::link_ratio({50, 0}, 10, 4000) == 1000);
  const fl::i64 most = (std::numeric_limits<fl::i64>::max)();
  CHECK(fl::link_ratio({0, most}, 1, 4000) == 4000);
  CHECK(fl::link_ratio({0, most}, most - 1, 4000) == 1001);
  static_assert(fl::link_ratio({0, 3000}, 1000, 10'000) == 3000);
}
