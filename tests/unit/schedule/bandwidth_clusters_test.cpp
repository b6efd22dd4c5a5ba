// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/bandwidth_clusters.hpp>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::peer_groups;
using fl::u64;

namespace {

constexpr u64 fast = 1'250'000'000, slow = 5'000'000;

fl::cluster joined(int peers, u64 (*bandwidth)(int, int)) {
  fl::cluster c = fl::uniform_cluster(peers, {"", 0, 1, 1, 0, 0}, {1, 1});
  for (int a = 0; a < peers; ++a)
    for (int b = 0; b < peers; ++b) c.between(a, b).bytes_per_second = bandwidth(a, b);
  return c;
}

static_assert(fl::log2_256ths(1) == 0 && fl::log2_256ths(1024) == 2560);
static_assert(fl::log2_256ths(3) == 256 + 128 && fl::log2_256ths(~u64(0)) == 63 * 256 + 255);

}  // namespace

TEST_CASE("the logarithm grows with its argument") {
  for (u64 x = 1; x < 5000; ++x) CHECK(fl::log2_256ths(x) <= fl::log2_256ths(x + 1));
}

TEST_CASE("both ways find sites with peers in any order") {
  const auto c = joined(7, [](int a, int b) { return a % 2 == b % 2 ? fast : slow; });
  const peer_groups expected{0, 1, 0, 1, 0, 1, 0};
  CHECK(fl::louvain_groups(c) == expected);
  CHECK(fl::linked_groups(c, fast) == expected);
  CHECK(fl::linked_groups(c, slow) == peer_groups(7, 0));
  CHECK(fl::linked_groups(c, fast + 1) == peer_groups{0, 1, 2, 3, 4, 5, 6});
  const auto all = fl::threshold_groups(c, 8);
  REQUIRE(all.size() == 2);
  CHECK(all[0] == expected);
  CHECK(all[1] == peer_groups(7, 0));
}

TEST_CASE("Louvain merges what is merged best, three sites of unequal size") {
  const auto c = joined(12, [](int a, int b) {
    const auto site = [](int i) { return i < 6 ? 0 : i < 10 ? 1 : 2; };
    return site(a) == site(b) ? fast : slow;
  });
  CHECK(fl::louvain_groups(c) == peer_groups{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2});
}

TEST_CASE("a bandwidth counts as the slower direction; closed links join nobody") {
  const auto c = joined(3, [](int a, int b) { return a < b ? fast : a == 2 ? u64(0) : slow; });
  CHECK(fl::linked_groups(c, fast) == peer_groups{0, 1, 2});
  CHECK(fl::linked_groups(c, slow) == peer_groups{0, 0, 1});
  const auto apart = joined(3, [](int, int) { return u64(0); });
  CHECK(fl::louvain_groups(apart) == peer_groups{0, 1, 2});
  CHECK(fl::threshold_groups(apart, 4).empty());
}

TEST_CASE("equal bandwidth everywhere is one group, a peer alone is one") {
  const auto c = joined(5, [](int, int) { return slow; });
  CHECK(fl::louvain_groups(c) == peer_groups(5, 0));
  CHECK(fl::threshold_groups(c, 4).size() == 1);
  CHECK(fl::louvain_groups(joined(1, [](int, int) { return fast; })) == peer_groups{0});
}

TEST_CASE("many thresholds are thinned evenly, first and last kept") {
  const auto c = joined(12, [](int a, int b) { return u64(1000) << (a < b ? a : b); });
  const auto all = fl::threshold_groups(c, 100), some = fl::threshold_groups(c, 4);
  CHECK(all.size() == 11);
  REQUIRE(some.size() == 4);
  CHECK(some.front() == all.front());
  CHECK(some.back() == all.back());
}
