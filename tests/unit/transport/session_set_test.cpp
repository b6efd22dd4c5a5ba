// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/session_set.hpp>

#include <fusionllm/transport/in_process.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;
using fusionllm_test::named;
using fusionllm_test::recorder;

TEST_CASE("the oldest of too many half-open connections makes room") {
  fl::virtual_reactor time;
  fl::virtual_network net(time);
  net.add("b");
  auto o = named("b");
  o.half_open = 2;
  o.handshake_timeout = 10 * fl::second;
  fl::in_process b(net, "b", o);
  recorder at_b(net.node("b"));
  b.listen({"b", 1}, at_b);
  std::vector<std::unique_ptr<fl::in_process>> callers;
  std::vector<std::unique_ptr<recorder>> records;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "a" + std::to_string(i);
    net.add(name);
    // They connect and then say so little that their hello takes for ever.
    net.set_link(name, "b", {.latency = 0, .bits_per_second = i < 3 ? fl::u64(8) : fl::u64(0)});
    callers.push_back(std::make_unique<fl::in_process>(net, name, named(name)));
    records.push_back(std::make_unique<recorder>(net.node(name)));
    callers.back()->connect({.to = {"b", 1}, .whom = "b"}, *records.back());
    time.run_until(time.now() + 10 * fl::millisecond);
  }
  time.run_until(time.now() + 200 * fl::millisecond);
  CHECK(at_b.opened == 1);
  CHECK(records[3]->opened == 1);
  REQUIRE(at_b.rejected.size() == 2);
  CHECK(at_b.rejected[0].code() == fl::errc::resource);
  CHECK(contains(at_b.rejected[0].what(), "made room: 2 connections are in their handshake"));
}
