// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/cluster.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {
fl::cluster three() { return fl::uniform_cluster(3, {"", 0, 1'000'000, 1 << 20, 0, 0}, {10, 1000}); }
}  // namespace

TEST_CASE("a uniform cluster passes its check") {
  const fl::cluster c = three();
  fl::check(c);
  CHECK(c.size() == 3);
  CHECK(c.between(0, 2) == fl::path{10, 1000});
  CHECK(c.title(1) == "1 (site/1)");
  CHECK(c.same_site(0, 2));
}

TEST_CASE("what cannot be a cluster is refused by its part") {
  const auto refused = [](auto change) {
    fl::cluster c = three();
    change(c);
    return error_of([&] { fl::check(c); });
  };
  CHECK(refused([](fl::cluster& c) { c.peers.clear(); }).says(fl::errc::topology, "no peer"));
  CHECK(refused([](fl::cluster& c) { c.paths.pop_back(); }).says(fl::errc::topology, "8 paths for 3 peers", "9"));
  CHECK(refused([](fl::cluster& c) { c.peers[1].flops_per_second = 0; }).says(fl::errc::topology, "1 (site/1)", "speed of 0"));
  CHECK(refused([](fl::cluster& c) { c.peers[2].site = 4; }).says(fl::errc::topology, "2 (site/2)", "site 4"));
  CHECK(refused([](fl::cluster& c) { c.peers[0].launch = -1; }).says(fl::errc::topology, "launch", "-1"));
  CHECK(refused([](fl::cluster& c) { c.between(2, 1).latency = -7; }).says(fl::errc::topology, "2 (site/2) to 1 (site/1)", "-7"));
}
