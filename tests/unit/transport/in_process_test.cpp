// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/in_process.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;
using fusionllm_test::heartbeat;
using fusionllm_test::message_of;
using fusionllm_test::named;
using fusionllm_test::pattern;
using fusionllm_test::recorder;

namespace {
/// Two nodes; b listens, a connects.
struct pair_of_nodes {
  explicit pair_of_nodes(fl::link_spec link = {}, fl::transport_options oa = named("a"),
                         fl::transport_options ob = named("b"), fl::u64 seed = 1)
      : net(time, seed) {
    net.set_default(link);
    net.add("a");
    net.add("b");
    a.emplace(net, "a", std::move(oa));
    b.emplace(net, "b", std::move(ob));
    at_b.emplace(net.node("b"));
    at_a.emplace(net.node("a"));
    b->listen({"b", 1}, *at_b);
    link_a = a->connect({.to = {"b", 1}, .whom = "b"}, *at_a);
  }
  void run(fl::nanoseconds t) { time.run_until(time.now() + t); }
  fl::virtual_reactor time;
  fl::virtual_network net;
  std::optional<recorder> at_a, at_b;
  std::optional<fl::in_process> a, b;
  fl::connection_ptr link_a;
};
constexpr fl::link_spec slow{.latency = 20 * fl::millisecond, .bits_per_second = 8'000'000};
}  // namespace

TEST_CASE("in process: a connection opens on both sides and ends on both") {
  pair_of_nodes p(slow);
  p.run(fl::second);
  REQUIRE(p.at_a->opened == 1);
  REQUIRE(p.at_b->opened == 1);
  CHECK(p.link_a->label() == "peer 'b' (b:1)");
  CHECK(p.link_a->remote().token.empty());
  p.link_a->close(fl::errc::ok, "enough");
  CHECK_FALSE(p.link_a->send(heartbeat()));
  p.run(fl::second);
  REQUIRE(p.at_a->closed.size() == 1);
  REQUIRE(p.at_b->closed.size() == 1);
  CHECK(p.at_a->closed[0].code() == fl::errc::ok);
  CHECK(p.at_b->closed[0].code() == fl::errc::ok);
  CHECK(contains(p.at_b->closed[0].what(), "peer 'a'"));
  CHECK(contains(p.at_b->closed[0].what(), "closed the connection: enough"));
}

TEST_CASE("in process: a heartbeat overtakes a tensor, and times are the model's") {
  pair_of_nodes p(slow);
  p.run(fl::second);
  p.at_b->places = true;
  const auto data = pattern(1'500'000);
  const fl::nanoseconds start = p.time.now();
  p.link_a->send(message_of(data, 5, fl::priority::tensor, 3));
  p.run(500 * fl::millisecond);
  const fl::nanoseconds beat = p.time.now();
  p.link_a->send(heartbeat());
  p.run(5 * fl::second);
  REQUIRE(p.at_b->messages.size() == 2);
  CHECK(p.at_b->messages[0].header.kind == fl::frame_kind::heartbeat);
  CHECK(p.at_b->messages[0].at - beat < 20 * fl::millisecond + 25 * fl::millisecond);
  CHECK((p.at_b->messages[1].payload == data));
  CHECK((p.at_b->placed[3] == data));
  const fl::u64 bytes = fl::wire_bytes(1'500'000, 20'000) + fl::wire_bytes(0, 1);
  CHECK(p.at_b->messages[1].at - start == 20 * fl::millisecond + fl::nanoseconds(bytes) * 1000);
  CHECK(p.at_a->sent.back() == 5);
  const auto s = p.link_a->statistics();
  CHECK(s.payload_sent > 1'500'000);
  CHECK(s.messages_sent == 4);  // hello, ready, tensor, heartbeat
  CHECK(s.wire_sent == s.payload_sent + 80 * s.frames_sent);
  CHECK(s.busy_sending == fl::nanoseconds(s.wire_sent) * 1000);
}

TEST_CASE("in process: sizes around the frame cap arrive exactly") {
  auto o = named("a");
  o.frames.frame_cap = 64 << 10;
  pair_of_nodes p({}, o, named("b"));
  p.run(fl::second);
  std::size_t n = 0;
  for (const std::size_t size : {std::size_t(0), std::size_t(1), std::size_t((64 << 10) - 1), std::size_t(64 << 10),
                                 std::size_t((64 << 10) + 1), std::size_t(1 << 20)}) {
    const auto data = pattern(size, unsigned(size));
    p.link_a->send(message_of(data));
    p.run(fl::second);
    REQUIRE(p.at_b->messages.size() == ++n);
    CHECK((p.at_b->messages.back().payload == data));
  }
  CHECK(p.link_a->statistics().frames_sent == 2 + 1 + 1 + 1 + 1 + 2 + 16);
}

TEST_CASE("in process: who may not come in learns why") {
  struct change {
    const char* text;
    void (*apply)(fl::transport_options&);
  };
  const change changes[] = {
      {"run id is 'run-2' at 'a' and 'run-1' at 'b'", [](fl::transport_options& o) { o.self.run = "run-2"; }},
      {"the token at 'a' is not the token at 'b'", [](fl::transport_options& o) { o.self.token = "guess"; }},
      {"model fingerprint is 5 at 'a' and 99 at 'b'", [](fl::transport_options& o) { o.self.fingerprint = 5; }},
      {"configuration key 'learning_rate' is '0.002' at 'a' and '0.001' at 'b'",
       [](fl::transport_options& o) { o.self.config[0].value = "0.002"; }}};
  for (const change& c : changes) {
    auto o = named("a");
    c.apply(o);
    pair_of_nodes p(slow, o);
    p.run(fl::second);
    REQUIRE(p.at_a->closed.size() == 1);
    REQUIRE(p.at_b->rejected.size() == 1);
    CHECK(p.at_a->opened + p.at_b->opened == 0);
    CHECK(p.at_b->closed.empty());
    CHECK(p.at_a->closed[0].code() == fl::errc::handshake);
    CHECK(p.at_b->rejected[0].code() == fl::errc::handshake);
    CHECK(contains(p.at_a->closed[0].what(), c.text));
    CHECK(contains(p.at_b->rejected[0].what(), c.text));
    CHECK_FALSE(contains(p.at_a->closed[0].what(), "secret"));
  }
  auto next = named("a");
  next.version = fl::wire_version + 1;
  pair_of_nodes p(slow, next);
  p.run(fl::second);
  REQUIRE(p.at_a->closed.size() == 1);
  REQUIRE(p.at_b->rejected.size() == 1);
  const std::string one = std::to_string(fl::wire_version), two = std::to_string(fl::wire_version + 1);
  CHECK(p.at_a->closed[0].code() == fl::errc::handshake);
  CHECK(contains(p.at_a->closed[0].what(), "wire version " + one + " there, " + two));
  CHECK(contains(p.at_b->rejected[0].what(), "wire version " + two + " there, " + one));
}

TEST_CASE("in process: the side that accepts may refuse by itself") {
  pair_of_nodes p(slow);
  p.at_b->refuse_name = "a";
  p.run(fl::second);
  REQUIRE(p.at_a->closed.size() == 1);
  CHECK(contains(p.at_a->closed[0].what(), "refused the connection: not you"));
}

TEST_CASE("in process: nobody there, nobody listening") {
  pair_of_nodes p(slow);
  recorder nobody(p.net.node("a"));
  p.a->connect({.to = {"zz", 1}, .whom = "zz"}, nobody);
  p.a->connect({.to = {"b", 7}, .whom = "b"}, nobody);
  p.run(fl::second);
  REQUIRE(nobody.closed.size() == 2);
  CHECK(nobody.closed[0].code() == fl::errc::network);
  CHECK(contains(nobody.closed[0].what(), "no node of this name"));
  CHECK(contains(nobody.closed[1].what(), "'b' (b:7): connection refused: nobody listens there"));
  CHECK_THROWS_AS(p.b->listen({"b", 1}, nobody), fl::error);
  CHECK_THROWS_AS(p.b->listen({"c", 1}, nobody), fl::error);
  CHECK(p.b->listen({"b", 0}, nobody).port != 0);
}

TEST_CASE("in process: every wait for a connection is bounded and names whom") {
  pair_of_nodes p(slow);
  recorder r(p.net.node("a"));
  p.net.kill("b", fl::death::power);
  p.a->connect({.to = {"b", 1}, .whom = "the broker", .timeout = 2 * fl::second}, r);
  p.run(1999 * fl::millisecond);
  CHECK(r.closed.empty());
  p.run(2 * fl::millisecond);
  REQUIRE(r.closed.size() == 1);
  CHECK(r.closed[0].code() == fl::errc::timeout);
  CHECK(contains(r.closed[0].what(), "waited 2 s for 'the broker' (b:1): no answer to the connection"));
}

TEST_CASE("in process: retrying until somebody listens") {
  fl::virtual_reactor time;
  fl::virtual_network net(time);
  net.add("a");
  net.add("b");
  fl::in_process a(net, "a", named("a")), b(net, "b", named("b"));
  recorder at_a(net.node("a")), at_b(net.node("b"));
  a.connect({.to = {"b", 1}, .whom = "b", .timeout = 5 * fl::second, .retry = true}, at_a);
  time.at(fl::second, [&] { b.listen({"b", 1}, at_b); });
  time.run_until(2 * fl::second);
  CHECK(at_a.opened == 1);
  CHECK(at_b.opened == 1);
}

TEST_CASE("in process: a killed process is noticed at once, a stopped one is silence") {
  pair_of_nodes p(slow);
  p.run(fl::second);
  SECTION("killed") {
    p.net.kill("b");
    p.run(25 * fl::millisecond);
    REQUIRE(p.at_a->closed.size() == 1);
    CHECK(p.at_a->closed[0].code() == fl::errc::peer_lost);
    CHECK(contains(p.at_a->closed[0].what(), "peer 'b' (b:1): the connection was lost"));
    CHECK(p.at_b->closed.empty());  // it is dead
  }
  SECTION("power cut") {
    p.net.kill("b", fl::death::power);
    p.run(5 * fl::second);
    CHECK(p.at_a->closed.empty());
  }
  SECTION("stopped and continued") {
    p.net.freeze("b");
    p.link_a->send(heartbeat());
    p.run(5 * fl::second);
    CHECK(p.at_a->closed.empty());
    CHECK(p.at_b->messages.empty());
    p.net.thaw("b");
    p.run(fl::second);
    CHECK(p.at_b->messages.size() == 1);
  }
  SECTION("stopped in the middle of sending") {
    const auto data = pattern(1'000'000);
    p.at_b->last->send(message_of(data));
    p.run(300 * fl::millisecond);
    p.net.freeze("b");
    p.run(5 * fl::second);
    CHECK(p.at_a->messages.empty());
    p.net.thaw("b");
    p.run(fl::second);
    REQUIRE(p.at_a->messages.size() == 1);
    CHECK((p.at_a->messages[0].payload == data));
  }
  SECTION("reset") {
    p.net.reset("a", "b");
    p.run(fl::millisecond);
    CHECK(p.at_a->closed.size() == 1);
    CHECK(p.at_b->closed.size() == 1);
  }
  SECTION("stalled in the middle of a message") {
    const auto data = pattern(1'000'000);
    p.link_a->send(message_of(data));
    p.run(200 * fl::millisecond);
    p.net.cut("a", "b");
    p.run(31 * fl::second);
    REQUIRE(p.at_b->closed.size() == 1);
    CHECK(p.at_b->closed[0].code() == fl::errc::timeout);
    CHECK(contains(p.at_b->closed[0].what(), "peer 'a'"));
    CHECK(contains(p.at_b->closed[0].what(), "sent nothing of an unfinished message for 30 s"));
  }
}

TEST_CASE("in process: a restarted node takes part again") {
  pair_of_nodes p(slow);
  p.run(fl::second);
  p.net.kill("b");
  p.run(fl::second);
  p.b.reset();
  p.net.revive("b");
  p.b.emplace(p.net, "b", named("b"));
  recorder again(p.net.node("b"));
  p.b->listen({"b", 1}, again);
  p.a->connect({.to = {"b", 1}, .whom = "b"}, *p.at_a);
  p.run(fl::second);
  CHECK(again.opened == 1);
  CHECK(p.at_a->opened == 2);
}

TEST_CASE("in process: a handler's error closes the connection and is told to the other side") {
  pair_of_nodes p(slow);
  p.run(fl::second);
  p.at_b->throw_text = "activation of edge 9 does not belong to this plan";
  p.link_a->send(heartbeat());
  p.run(fl::second);
  REQUIRE(p.at_a->closed.size() == 1);
  REQUIRE(p.at_b->closed.size() == 1);
  CHECK(p.at_a->closed[0].code() == fl::errc::model);
  CHECK(contains(p.at_a->closed[0].what(), "edge 9"));
  CHECK(contains(p.at_b->closed[0].what(), "peer 'a'"));
}

TEST_CASE("in process: a queue has an end, and a message a cap") {
  auto o = named("a");
  o.send_queue = 3;
  o.frames.message_cap = 1000;
  pair_of_nodes p({}, o);
  p.run(fl::second);
  REQUIRE(p.link_a->is_open());
  p.net.set_both("a", "b", {.latency = 1, .bits_per_second = 1000});
  for (int i = 0; i < 4; ++i) p.link_a->send(heartbeat());  // one is on the line
  CHECK_THROWS_AS(p.link_a->send(heartbeat()), fl::error);
  const std::vector<std::byte> big(1001);
  CHECK_THROWS_AS(p.link_a->send(message_of(big)), fl::error);
}

TEST_CASE("in process: transports and connections may go in any order") {
  auto p = std::make_unique<pair_of_nodes>(slow);
  p->run(fl::second);
  const auto data = pattern(100'000);
  p->link_a->send(message_of(data));
  p->run(30 * fl::millisecond);
  p->a.reset();
  CHECK_FALSE(p->link_a->is_open());
  CHECK_FALSE(p->link_a->send(heartbeat()));
  p->run(fl::second);
  REQUIRE(p->at_b->closed.size() == 1);
  CHECK(p->at_b->closed[0].code() == fl::errc::peer_lost);
  CHECK(p->at_a->closed.empty());
  p.reset();
}

TEST_CASE("in process: a run replays from its seed, and another seed is another run") {
  auto trace = [](fl::u64 seed) {
    pair_of_nodes p({.latency = fl::millisecond, .bits_per_second = 1'000'000, .jitter = 5 * fl::millisecond}, named("a"),
                    named("b"), seed);
    p.run(fl::second);
    p.time.at(p.time.now() + fl::nanoseconds(p.net.draw(3 * fl::second)), [&p] { p.net.kill("b"); });
    const auto data = pattern(10'000);
    for (int i = 0; i < 40; ++i) p.link_a->send(message_of(data, fl::u64(i)));
    p.run(10 * fl::second);
    std::vector<fl::nanoseconds> times;
    for (const auto& m : p.at_b->messages) times.push_back(m.at);
    times.push_back(p.at_a->closed_at);
    times.push_back(fl::nanoseconds(p.time.events()));
    return times;
  };
  CHECK(trace(1) == trace(1));
  CHECK(trace(2) == trace(2));
  CHECK(trace(1) != trace(2));
}
