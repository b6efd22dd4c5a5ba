// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/cost_model.hpp>

#include "catch.hpp"
#include "fusionllm/graph/graph.hpp"
#include "fusionllm/ops/ops.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fl::direction;

namespace {

struct one_linear {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 8>(g, "y");
    return fl::mean_squared_error(x | fl::linear<8>, y);
  }
};

fl::cost_model two_peers() {
  return fl::cost_model(fl::uniform_cluster(2, {"", 0, 1'000'000'000, 1 << 20, 0, 100}, {50, 1'000'000'000}));
}

}  // namespace

TEST_CASE("an operator costs its flops at the peer's speed, and a launch") {
  const fl::cost_model c = two_peers();
  const fl::graph_view g = fl::graph_of<one_linear>();
  int linear = -1;
  for (int i = 0; i < g.size(); ++i)
    if (g.nodes[std::size_t(i)].op->name == "linear") linear = i;
  CHECK(c.compute(0, g, linear, direction::forward, {3, 1}) == 2 * 3 * 8 * 4 + 100);
  CHECK(c.compute(0, g, linear, direction::backward, {3, 1}) == 2 * (2 * 3 * 8 * 4) + 100);
  CHECK(c.compute(0, g, 0, direction::forward, {3, 1}) == 0);  // a model's input
  CHECK(c.update(1, 1000) == 16'000 + 100);
  CHECK(c.update(1, 0) == 0);
}

TEST_CASE("measured rates replace assumed ones, of one peer") {
  fl::cost_model c = two_peers();
  fl::device_rates r;
  r.other.launch = 9;
  c.set_rates(1, r);
  CHECK(c.compute(1, "linear", direction::forward, 1'000'000, 0) == 9);
  CHECK(c.compute(0, "linear", direction::forward, 1'000'000, 0) == 1'000'100);
}

TEST_CASE("backward moves twice the bytes") {
  fl::cost_model c = two_peers();
  fl::device_rates r;
  r.other.attoseconds_per_byte = fl::attoseconds_per_nanosecond;
  c.set_rates(0, r);
  CHECK(c.compute(0, "x", direction::forward, 0, 70) == 70);
  CHECK(c.compute(0, "x", direction::backward, 0, 70) == 140);
}

TEST_CASE("links cost latency and bytes with the message's overhead") {
  fl::cost_model c = two_peers();
  CHECK(c.transfer(0, 1, 1000) == 50 + 1080);
  CHECK(c.occupancy(0, 1, 1000) == 1080);
  c.set_message_overhead(0);
  CHECK(c.transfer(0, 1, 1000) == 1050);
  CHECK(c.transfer(1, 1, 1000) == 0);
  c.set_path(0, 1, {});
  CHECK_FALSE(c.reachable(0, 1));
  CHECK(c.reachable(1, 0));
  CHECK(c.transfer(0, 1, 1) == fl::never);
}

TEST_CASE("encoded sizes come from the compressors' function, never more than raw") {
  const fl::extents dims{2, {16, 64}};
  fl::cost_model c(two_peers().machines(), [](std::string_view codec, double ratio, fl::i64 rows, fl::i64 columns) {
    return codec == "grows" ? fl::u64(1) << 30 : fl::u64(ratio) + fl::u64(rows * 1000 + columns);
  });
  CHECK(c.wire_bytes("none", 10, dims) == 16 * 64 * 4);
  CHECK(c.wire_bytes("", 10, dims) == 16 * 64 * 4);
  CHECK(c.wire_bytes("grows", 10, dims) == 16 * 64 * 4);
  CHECK(c.wire_bytes("any", 10, {2, {1, 64}}) == 256);
  CHECK(c.wire_bytes("any", 10, {3, {1, 1, 500}}) == 10 + 1500);
  CHECK(c.wire_bytes("any", 10, dims, fl::element::i32) == 16 * 64 * 4);
  CHECK(two_peers().wire_bytes("any", 10, dims) == 410);
  CHECK(two_peers().wire_bytes("any", 0.5, dims) == 4096);
}

TEST_CASE("encoding costs time where a rate says so") {
  fl::cost_model c = two_peers();
  CHECK(c.coding(0, 1'000'000) == 0);
  fl::device_rates r = c.rates(0);
  r.attoseconds_per_coded_byte = 500'000'000;
  c.set_rates(0, r);
  CHECK(c.coding(0, 1'000'000) == 500'000);
}

TEST_CASE("a cluster without speed is refused") {
  fl::cluster c = two_peers().machines();
  c.peers[1].flops_per_second = 0;
  CHECK(fusionllm_test::error_of([&] { fl::cost_model m(c); }).says(fl::errc::topology, "speed of 0"));
}
