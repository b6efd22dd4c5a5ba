// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/session.hpp>

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
struct world {
  explicit world(fl::link_spec link = {}) : net(time) {
    net.set_default(link);
    net.add("a");
    net.add("b");
    a.emplace(net, "a", named("a"));
    b.emplace(net, "b", named("b"));
    b->listen({"b", 1}, at_b);
    link_a = a->connect({.to = {"b", 1}, .whom = "b"}, at_a);
  }
  void run(fl::nanoseconds t) { time.run_until(time.now() + t); }
  fl::virtual_reactor time;
  fl::virtual_network net;
  recorder at_a{time}, at_b{time};
  std::optional<fl::in_process> a, b;
  fl::connection_ptr link_a;
};
}  // namespace

TEST_CASE("close() sends what is queued first, abort() does not") {
  world w({.latency = fl::millisecond, .bits_per_second = 8'000'000});
  w.run(fl::second);
  const auto data = pattern(300'000);
  w.link_a->send(message_of(data, 1, fl::priority::bulk));
  SECTION("close") {
    w.link_a->close(fl::errc::interrupted, "stopped by the user");
    w.run(fl::second);
    REQUIRE(w.at_b.messages.size() == 1);
    CHECK((w.at_b.messages[0].payload == data));
    CHECK(w.at_a.sent == std::vector<fl::u64>{1});
    CHECK(w.at_b.closed.at(0).code() == fl::errc::interrupted);
  }
  SECTION("abort") {
    w.link_a->abort(fl::errc::peer_lost, "no heartbeat for 3 s");
    CHECK(w.at_a.closed.empty());  // never inside the call
    w.run(fl::second);
    CHECK(w.at_b.messages.empty());
    CHECK(w.at_a.closed.at(0).code() == fl::errc::peer_lost);
    CHECK(contains(w.at_a.closed.at(0).what(), "peer 'b' (b:1): closed by this side: no heartbeat for 3 s"));
    CHECK(w.at_b.closed.at(0).code() == fl::errc::peer_lost);
  }
  CHECK(w.at_a.closed.size() == 1);
  CHECK(w.at_b.closed.size() == 1);
}

TEST_CASE("both sides may close at the same moment") {
  world w({.latency = 10 * fl::millisecond});
  w.run(fl::second);
  w.link_a->close();
  w.at_b.last->close();
  w.run(2 * fl::second);
  CHECK(w.at_a.closed.at(0).code() == fl::errc::ok);
  CHECK(w.at_b.closed.at(0).code() == fl::errc::ok);
  CHECK(w.at_a.closed.size() + w.at_b.closed.size() == 2);
}

TEST_CASE("closing is bounded when the other side takes nothing") {
  world w({.latency = fl::millisecond, .bits_per_second = 8'000'000});
  w.run(fl::second);
  w.net.cut("a", "b");
  w.net.cut("b", "a");
  w.link_a->close();
  w.run(6 * fl::second);
  CHECK(w.at_a.closed.size() == 1);
}

TEST_CASE("a connection may be closed before it opens and from inside its own events") {
  world w({.latency = 10 * fl::millisecond});
  SECTION("before it opens") {
    w.link_a->close();
    w.run(fl::second);
    CHECK(w.at_a.opened == 0);
    CHECK(w.at_a.closed.size() == 1);
    CHECK(w.at_b.opened == 0);
  }
  SECTION("in on_message") {
    struct closer : recorder {
      using recorder::recorder;
      void on_message(fl::connection& c, const fl::frame_header&, fl::const_byte_span) override {
        c.abort(fl::errc::ok, "enough");
      }
    } closing(w.time);
    w.run(fl::second);
    w.at_b.last->set_handler(closing);
    w.link_a->send(heartbeat());
    w.link_a->send(heartbeat());
    w.run(fl::second);
    CHECK(closing.closed.size() == 1);
    CHECK(w.at_a.closed.size() == 1);
  }
  SECTION("in place") {
    struct closer : recorder {
      using recorder::recorder;
      fl::byte_span place(fl::connection& c, const fl::frame_header&) override {
        c.abort(fl::errc::ok, "enough");
        return {};
      }
    } closing(w.time);
    w.run(fl::second);
    w.at_b.last->set_handler(closing);
    const auto data = pattern(100);
    w.link_a->send(message_of(data));
    w.run(fl::second);
    CHECK(closing.closed.size() == 1);
    CHECK(closing.messages.empty());
  }
}

TEST_CASE("messages without memory are bounded") {
  world w;
  w.run(fl::second);
  const auto data = pattern((16 << 20) + 1);
  w.link_a->send(message_of(data));
  w.run(fl::second);
  CHECK(w.at_b.closed.at(0).code() == fl::errc::protocol);
  CHECK(contains(w.at_b.closed.at(0).what(), "message of 16777217 bytes"));
  CHECK(contains(w.at_a.closed.at(0).what(), "the cap is 16777216"));
}

TEST_CASE("frame caps may differ: the smaller one holds") {
  world w;
  auto o = named("c");
  o.frames.frame_cap = 2000;
  w.net.add("c");
  fl::in_process c(w.net, "c", o);
  const auto link = c.connect({.to = {"b", 1}, .whom = "b"}, w.at_a);
  w.run(fl::second);
  REQUIRE(link->is_open());
  const auto data = pattern(10'000);
  link->send(message_of(data));
  w.at_b.last->send(message_of(data));
  w.run(fl::second);
  CHECK((w.at_a.messages.at(0).payload == data));
  CHECK((w.at_b.messages.at(0).payload == data));
}

TEST_CASE("a process that was stopped for long does not blame its peers") {
  world w({.latency = fl::millisecond, .bits_per_second = 8'000'000});
  w.run(fl::second);
  const auto data = pattern(300'000);
  w.link_a->send(message_of(data));
  w.run(100 * fl::millisecond);
  w.net.freeze("b");
  w.run(60 * fl::second);
  w.net.thaw("b");
  w.run(fl::second);
  CHECK(w.at_b.closed.empty());
  REQUIRE(w.at_b.messages.size() == 1);
  CHECK((w.at_b.messages[0].payload == data));
}
