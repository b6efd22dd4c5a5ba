// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/topology_json.hpp>

#include <chrono>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fl::errc;
using fusionllm_test::error_of;

namespace {

const char* const good = R"({
  "description": "two sites",
  "sites": [
    {"name": "lab", "devices": 2, "tflops": 10, "memory_gib": 16, "inside": {"mbps": 1000, "latency_ms": 0.1}},
    {"name": "home", "devices": [{"name": "pc", "tflops": 5, "launch_us": 0}, {"count": 2, "tflops": 1}],
     "memory_gib": 8, "efficiency": 0.5, "inside": {"mbps": 100, "latency_ms": 1}, "line": {"up_mbps": 20, "down_mbps": 80}}
  ],
  "links": [{"between": ["lab", "home"], "mbps": 50, "latency_ms": 10}]
})";

// The good file with the value at a JSON pointer replaced (or added), or, with `nullptr` as text, removed.
fusionllm_test::caught changed(const char* pointer, const char* value) {
  nlohmann::json j = nlohmann::json::parse(good);
  const nlohmann::json::json_pointer at(pointer);
  if (value) j[at] = nlohmann::json::parse(value);
  else j[at.parent_pointer()].erase(at.back());
  return error_of([&] { fl::read_topology(j); });
}

}  // namespace

TEST_CASE("a topology file gives sites, devices and both directions of its links") {
  const fl::topology t = fl::parse_topology(good);
  REQUIRE(t.sites.size() == 2);
  CHECK(t.description == "two sites");
  CHECK(t.sites[0].devices.size() == 2);
  CHECK(t.sites[1].devices.size() == 3);
  CHECK(t.sites[1].devices[0].name == "pc");
  CHECK(t.sites[1].devices[0].launch_us == 0);
  CHECK(t.sites[1].devices[1].launch_us == 5);
  CHECK(t.sites[1].devices[2].tflops == 1);
  CHECK(t.sites[1].devices[2].memory_gib == 8);
  CHECK(t.sites[1].devices[2].efficiency == 0.5);
  CHECK(t.sites[1].line_up_mbps == 20);
  REQUIRE(t.links.size() == 2);
  const fl::cluster c = fl::expand(t);
  CHECK(c.peers[2].name == "pc");
  CHECK(c.peers[3].name == "home/1");
  CHECK(c.between(0, 4).bytes_per_second == 50'000'000 / 8);
  CHECK(c.between(4, 0).bytes_per_second == 20'000'000 / 8);
}

TEST_CASE("one direction of a link can be said alone") {
  nlohmann::json j = nlohmann::json::parse(good);
  j["links"] = nlohmann::json::parse(R"([{"from": "lab", "to": "home", "mbps": 10, "latency_ms": 1},
                                         {"from": "home", "to": "lab", "mbps": 5, "latency_ms": 2}])");
  const fl::cluster c = fl::expand(fl::read_topology(j));
  CHECK(c.between(0, 2) == fl::path{fl::millisecond, 1'250'000});
  CHECK(c.between(2, 0) == fl::path{2 * fl::millisecond, 625'000});
}

TEST_CASE("a site of one device needs no inside, a topology of one site no links") {
  const auto t = fl::parse_topology(R"({"sites": [{"name": "a", "devices": 1, "tflops": 1, "memory_gib": 1}]})");
  CHECK(fl::expand(t).size() == 1);
}

TEST_CASE("every missing key is named") {
  CHECK(changed("/sites", nullptr).says(errc::topology, "\"sites\"", "required"));
  CHECK(changed("/sites/0/name", nullptr).says(errc::topology, "sites[0]", "\"name\""));
  CHECK(changed("/sites/0/devices", nullptr).says(errc::topology, "sites[0]", "\"devices\""));
  CHECK(changed("/sites/0/tflops", nullptr).says(errc::topology, "sites[0]", "\"tflops\""));
  CHECK(changed("/sites/0/memory_gib", nullptr).says(errc::topology, "sites[0]", "\"memory_gib\""));
  CHECK(changed("/sites/0/inside", nullptr).says(errc::topology, "sites[0]", "\"inside\""));
  CHECK(changed("/sites/0/inside/mbps", nullptr).says(errc::topology, "sites[0].inside", "\"mbps\""));
  CHECK(changed("/sites/0/inside/latency_ms", nullptr).says(errc::topology, "sites[0].inside", "\"latency_ms\""));
  CHECK(changed("/sites/1/devices/0/tflops", nullptr).says(errc::topology, "sites[1].devices[0]", "\"tflops\""));
  CHECK(changed("/links/0/between", nullptr).says(errc::topology, "links[0]", "\"between\""));
  CHECK(changed("/links/0/mbps", nullptr).says(errc::topology, "links[0]", "\"mbps\""));
  CHECK(changed("/links/0/latency_ms", nullptr).says(errc::topology, "links[0]", "\"latency_ms\""));
  CHECK(changed("/sites/1/line/up_mbps", nullptr).says(errc::topology, "sites[1].line", "up_mbps"));
}

TEST_CASE("every unknown key is named, wherever it is") {
  CHECK(changed("/site", "[]").says(errc::topology, "\"site\""));
  CHECK(changed("/sites/0/tflop", "1").says(errc::topology, "sites[0]", "\"tflop\""));
  CHECK(changed("/sites/0/inside/jitter_ms", "1").says(errc::topology, "sites[0].inside", "\"jitter_ms\""));
  CHECK(changed("/sites/1/devices/0/speed", "1").says(errc::topology, "sites[1].devices[0]", "\"speed\""));
  CHECK(changed("/sites/1/line/x", "1").says(errc::topology, "sites[1].line", "\"x\""));
  CHECK(changed("/links/0/gbps", "1").says(errc::topology, "links[0]", "\"gbps\""));
}

TEST_CASE("every number that is wrong, negative, zero or no number is named") {
  for (const char* bad : {"0", "-1", "\"fast\"", "null", "[]", "1e10", "1e-30"}) {
    CHECK(changed("/sites/0/tflops", bad).says(errc::topology, "tflops"));
    CHECK(changed("/sites/0/memory_gib", bad).says(errc::topology, "memory_gib"));
    CHECK(changed("/sites/0/inside/mbps", bad).says(errc::topology, "mbps"));
    CHECK(changed("/links/0/mbps", bad).says(errc::topology, "mbps"));
  }
  for (const char* bad : {"0", "-0.1", "1.5", "\"x\"", "null"}) CHECK(changed("/sites/0/efficiency", bad).says(errc::topology, "sites[0].efficiency"));
  for (const char* bad : {"-1", "\"x\"", "null", "1e10"}) {
    CHECK(changed("/sites/0/inside/latency_ms", bad).says(errc::topology, "sites[0].inside.latency_ms"));
    CHECK(changed("/links/0/latency_ms", bad).says(errc::topology, "links[0].latency_ms"));
    CHECK(changed("/sites/0/launch_us", bad).says(errc::topology, "sites[0].launch_us"));
  }
  CHECK(changed("/links/0/latency_ms", "0").code == errc::ok);
  for (const char* bad : {"0", "-3", "2.5", "\"two\"", "null", "5000", "99999999999999999999"})
    CHECK(changed("/sites/0/devices", bad).says(errc::topology, "sites[0].devices"));
  for (const char* bad : {"0", "-3", "2.5", "5000"})
    CHECK(changed("/sites/1/devices/1/count", bad).says(errc::topology, "sites[1].devices[1].count"));
  CHECK(changed("/sites/1/devices", "[]").says(errc::topology, "sites[1].devices"));
  CHECK(changed("/sites", "[]").says(errc::topology, "sites"));
  CHECK(changed("/sites", "{}").says(errc::topology, "sites", "a list"));
  CHECK(changed("/sites/0", "3").says(errc::topology, "sites[0]", "an object"));
  CHECK(changed("/description", "7").says(errc::topology, "description"));
}

TEST_CASE("names have to be new, and links to join two known sites once") {
  CHECK(changed("/sites/1/name", "\"lab\"").says(errc::topology, "sites[1].name", "lab"));
  CHECK(changed("/sites/1/name", "\"\"").says(errc::topology, "sites[1].name"));
  CHECK(changed("/sites/1/devices/0/name", "\"lab/0\"").says(errc::topology, "lab/0"));
  CHECK(changed("/sites/1/devices/1/name", "\"both\"").says(errc::topology, "sites[1].devices[1]", "name or count"));
  CHECK(changed("/links/0/between", "[\"lab\", \"moon\"]").says(errc::topology, "links[0].between[1]", "moon"));
  CHECK(changed("/links/0/between", "[\"lab\"]").says(errc::topology, "links[0].between", "two sites"));
  CHECK(changed("/links/0/between", "[\"lab\", \"lab\"]").says(errc::topology, "links[0]", "itself"));
  CHECK(changed("/links/0/from", "\"lab\"").says(errc::topology, "links[0]", "between"));
  CHECK(changed("/links/1", R"({"from": "home", "to": "lab", "mbps": 1, "latency_ms": 1})")
            .says(errc::topology, "links[1]", "second link from home to lab"));
  CHECK(changed("/sites/1/line", R"({"mbps": 1, "up_mbps": 1})").says(errc::topology, "sites[1].line"));
}

TEST_CASE("what is too large or too long says so") {
  CHECK(changed("/sites/0/tflops", "1e9").says(errc::topology, "tflops", "too large", "9e+06"));
  const auto named = [](std::size_t n) {
    return error_of([&] { fl::parse_topology(R"({"sites": [{"name": ")" + std::string(n, 'x') + R"(", "devices": 1, "tflops": 1, "memory_gib": 1}]})"); });
  };
  CHECK(named(250).says(errc::topology, "252 bytes", "at most 200"));
  CHECK(named(198).code == errc::ok);
}

TEST_CASE("many sites and links are read in a time that does not grow with their square") {
  nlohmann::json j = {{"sites", nlohmann::json::array()}, {"links", nlohmann::json::array()}};
  constexpr int sites = 600, links = 60;
  for (int i = 0; i < sites; ++i) {
    j["sites"].push_back({{"name", "s" + std::to_string(i)}, {"devices", 1}, {"tflops", 1}, {"memory_gib", 1}});
    for (int k = i + 1; k < std::min(sites, i + links); ++k)
      j["links"].push_back({{"between", {"s" + std::to_string(i), "s" + std::to_string(k)}}, {"mbps", 1}, {"latency_ms", 1}});
  }
  const auto begin = std::chrono::steady_clock::now();
  CHECK(fl::expand(fl::read_topology(j)).size() == sites);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));  // comparing every two took minutes
}

TEST_CASE("the file's name is in the error, and the topologies that come with the examples are good") {
  CHECK(error_of([] { fl::load_topology("/no/such.json"); }).says(errc::topology, "/no/such.json"));
  const std::string source = fusionllm_test::environment("FUSIONLLM_SOURCE");
  if (source.empty()) return;
  const std::pair<const char*, int> files[] = {{"testbed_1", 24}, {"testbed_2", 48}, {"testbed_3", 48}, {"eight_regions", 64}, {"demo", 4}};
  for (const auto& [name, peers] : files)
    CHECK(fl::expand(fl::load_topology(source + "/examples/topologies/" + name + ".json")).size() == peers);
}
