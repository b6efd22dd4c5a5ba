// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/topology.hpp>

#include <limits>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {

fl::topology two_sites() {
  fl::topology t;
  t.sites.push_back({"lab", {{"", 2, 8, 0.5, 0, 5}, {"lab/odd", 1, 4, 1, 100, 0}}, fl::link_speed{1000, 0.1}, 0, 0});
  t.sites.push_back({"home", {{"", 1, 2, 1, 0, 5}}, {}, 20, 80});
  t.links.push_back({"lab", "home", {100, 10}});
  t.links.push_back({"home", "lab", {50, 12}});
  return t;
}

}  // namespace

TEST_CASE("a topology expands to integers, peers in its order") {
  const fl::cluster c = fl::expand(two_sites());
  REQUIRE(c.size() == 3);
  CHECK(c.peers[0].name == "lab/0");
  CHECK(c.peers[0].flops_per_second == 1'000'000'000'000);  // half of 2 teraflops
  CHECK(c.peers[0].memory_bytes == fl::u64(8) << 30);
  CHECK(c.peers[0].launch == 5'000);
  CHECK(c.peers[1].name == "lab/odd");
  CHECK(c.peers[1].memory_bytes_per_second == 100'000'000'000);
  CHECK(c.peers[2].name == "home/0");
  CHECK(c.between(0, 1) == fl::path{100'000, 125'000'000});
  CHECK(c.between(1, 0) == c.between(0, 1));
}

TEST_CASE("directions differ, and a site's line is the narrowest place of its links") {
  const fl::cluster c = fl::expand(two_sites());
  CHECK(c.between(0, 2) == fl::path{10 * fl::millisecond, 10'000'000});  // 80 Mbit/s down, not 100
  CHECK(c.between(2, 0) == fl::path{12 * fl::millisecond, 2'500'000});   // 20 Mbit/s up, not 50
  CHECK(c.sites[1].up == 2'500'000);
  CHECK(c.sites[0].up == 0);
}

TEST_CASE("sites without a link cannot reach each other") {
  fl::topology t = two_sites();
  t.links.pop_back();
  const fl::cluster c = fl::expand(t);
  CHECK(c.between(0, 2).open());
  CHECK_FALSE(c.between(2, 0).open());
}

TEST_CASE("numbers that are none are refused by name") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (double bad : {nan, inf, -1.0, 0.0, 1e-20}) {
    fl::topology t = two_sites();
    t.sites[0].devices[0].tflops = bad;
    CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "lab/0 tflops"));
    t = two_sites();
    t.sites[0].devices[1].memory_gib = bad;
    CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "lab/odd memory_gib"));
    t = two_sites();
    t.links[0].speed.mbps = bad;
    CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "lab to home mbps"));
    t = two_sites();
    t.sites[0].inside->mbps = bad;
    CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "lab inside mbps"));
  }
  for (double bad : {nan, inf, -1.0}) {
    fl::topology t = two_sites();
    t.links[1].speed.latency_ms = bad;
    CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "home to lab latency_ms"));
    t = two_sites();
    t.sites[1].line_up_mbps = bad;
    CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "home line up_mbps"));
    t = two_sites();
    t.sites[1].devices[0].launch_us = bad;
    CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "home/0 launch_us"));
  }
}

TEST_CASE("links of unknown sites, within a site, and twice are refused") {
  fl::topology t = two_sites();
  t.links.push_back({"lab", "moon", {1, 1}});
  CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "moon"));
  t = two_sites();
  t.links.push_back({"lab", "lab", {1, 1}});
  CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "itself"));
  t = two_sites();
  t.links.push_back({"lab", "home", {1, 1}});
  CHECK(error_of([&] { fl::expand(t); }).says(fl::errc::topology, "two links go from lab to home"));
}
