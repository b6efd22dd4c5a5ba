// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/paced.hpp>

#include "catch.hpp"
#include "sockets.hpp"

namespace fl = fusionllm;
using fusionllm_test::heartbeat;
using fusionllm_test::message_of;
using fusionllm_test::named;
using fusionllm_test::pattern;
using fusionllm_test::recorder;
using fusionllm_test::two_sockets;

TEST_CASE("paced: a message takes latency + bytes / bandwidth, a heartbeat overtakes it") {
  two_sockets s;
  fl::paced_links links(s.loop);
  links.set("b", {.latency = 10 * fl::millisecond, .bits_per_second = 20'000'000});
  fl::paced slow(*s.a, links);
  const auto link = slow.connect({.to = s.where, .whom = "b"}, s.at_a);
  REQUIRE(s.wait([&] { return s.at_a.opened == 0 || s.at_b.opened == 0; }));
  const auto data = pattern(500'000);
  const fl::nanoseconds start = s.loop.now();
  link->send(message_of(data, 3));
  s.run(50 * fl::millisecond);
  const fl::nanoseconds beat = s.loop.now();
  link->send(heartbeat());
  REQUIRE(s.wait([&] { return s.at_b.messages.size() < 2; }));
  CHECK(s.at_b.messages[0].header.kind == fl::frame_kind::heartbeat);
  CHECK(s.at_b.messages[0].at - beat < 100 * fl::millisecond);  // 30 ms by the model; the tensor takes 200
  const fl::u64 chunk = fl::paced_chunk(20'000'000, 20 * fl::millisecond, 256 << 10);
  const fl::nanoseconds modelled =
      10 * fl::millisecond + fl::nanoseconds(fl::wire_bytes(500'000, chunk) + fl::frame_header_bytes) * 400;
  const fl::nanoseconds took = s.at_b.messages[1].at - start;
  INFO("modelled " << modelled << ", took " << took);
  CHECK(took > modelled - fl::millisecond);
  CHECK(took < modelled * 13 / 10);  // a loaded machine; bench/transport_bench.cpp measures
  CHECK((s.at_b.messages[1].payload == data));
  CHECK(s.at_a.sent.back() == 3);
  CHECK(link->statistics().busy_sending >= modelled - 11 * fl::millisecond);
}

TEST_CASE("paced: links that share a line share its bandwidth") {
  two_sockets s;
  recorder at_c(s.loop);
  fl::asio_tcp c(s.loop, named("c"));
  const fl::address where_c = c.listen({"127.0.0.1", 0}, at_c);
  fl::paced_links links(s.loop);
  const auto uplink = links.shared_line(20'000'000);
  links.set("b", uplink, 0);
  links.set("c", uplink, 0);
  fl::paced slow(*s.a, links);
  const auto to_b = slow.connect({.to = s.where, .whom = "b"}, s.at_a);
  const auto to_c = slow.connect({.to = where_c, .whom = "c"}, s.at_a);
  REQUIRE(s.wait([&] { return s.at_a.opened < 2 || s.at_b.opened == 0 || at_c.opened == 0; }));
  const auto data = pattern(200'000);
  const fl::nanoseconds start = s.loop.now();
  to_b->send(message_of(data));
  to_c->send(message_of(data));
  REQUIRE(s.wait([&] { return s.at_b.messages.empty() || at_c.messages.empty(); }));
  CHECK(s.at_b.messages[0].at - start > 120 * fl::millisecond);  // alone: 80 ms; sharing: about 150
  CHECK(at_c.messages[0].at - start > 120 * fl::millisecond);
  CHECK(uplink->bytes() >= 400'000);
}

TEST_CASE("paced: without a link nothing is slow; the handler hears all events") {
  two_sockets s;
  fl::paced_links links(s.loop);
  fl::paced through(*s.a, links), behind(*s.b, links);
  recorder at_both(s.loop);
  const fl::address where = behind.listen({"127.0.0.1", 0}, at_both);
  at_both.refuse_name = "nobody";
  CHECK(&through.loop() == &s.loop);
  const auto link = through.connect({.to = where, .whom = "b"}, s.at_a);
  REQUIRE(s.wait([&] { return s.at_a.opened == 0 || at_both.opened == 0; }));
  link->send(heartbeat());
  REQUIRE(s.wait([&] { return at_both.messages.empty(); }));
  link->close();
  REQUIRE(s.wait([&] { return s.at_a.closed.empty() || at_both.closed.empty(); }));
  at_both.refuse_name = "a";
  recorder refused(s.loop);
  through.connect({.to = where, .whom = "b"}, refused);
  REQUIRE(s.wait([&] { return refused.closed.empty() || at_both.rejected.empty(); }));
  CHECK(refused.closed[0].code() == fl::errc::handshake);
}
