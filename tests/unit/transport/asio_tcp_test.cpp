// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/asio_tcp.hpp>

#include <sys/resource.h>

#include <asio/ip/udp.hpp>
#include <thread>

#include "catch.hpp"
#include "sockets.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;
using fusionllm_test::heartbeat;
using fusionllm_test::message_of;
using fusionllm_test::named;
using fusionllm_test::pattern;
using fusionllm_test::recorder;
using fusionllm_test::two_sockets;

namespace {
/// An address of this machine that is not loopback; empty when it has none.
std::string outer_address() {
  asio::io_context io;
  asio::ip::udp::socket s(io, asio::ip::udp::v4());
  asio::error_code e;
  s.connect({asio::ip::make_address("192.0.2.200"), 9}, e);  // sends nothing
  const auto mine = s.local_endpoint(e).address();
  return e || mine.is_loopback() || mine.is_unspecified() ? "" : mine.to_string();
}
template <class F>
std::string problem(F&& f) {
  try {
    f();
  } catch (const fl::error& e) {
    CHECK(e.code() == fl::errc::network);
    return e.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("tcp: messages of every size arrive exactly, both ways") {
  auto o = named("a");
  o.frames.frame_cap = 64 << 10;
  two_sockets s(o, named("b"));
  s.connect();
  REQUIRE(s.at_a.opened == 1);
  s.at_b.places = true;
  std::size_t n = 0;
  for (const std::size_t size : {std::size_t(0), std::size_t(1), std::size_t((64 << 10) - 1), std::size_t(64 << 10),
                                 std::size_t((64 << 10) + 1), std::size_t(1 << 20), std::size_t(5'000'001)}) {
    const auto data = pattern(size, unsigned(size));
    fl::outgoing m = message_of(fl::const_byte_span(data).first(size / 3), 7);
    m.parts[2] = fl::const_byte_span(data).subspan(size / 3);
    m.header.step = size;
    s.link->send(std::move(m));
    s.at_b.last->send(message_of(data));
    ++n;
    REQUIRE(s.wait([&] { return s.at_b.messages.size() < n || s.at_a.messages.size() < n || s.at_a.sent.size() < n; }));
    CHECK((s.at_b.messages.back().payload == data));
    CHECK((s.at_a.messages.back().payload == data));
    CHECK(s.at_b.messages.back().header.step == size);
    CHECK(s.at_b.placed[0].size() == size);
  }
  CHECK(s.at_a.sent == std::vector<fl::u64>(n, 7));
  const auto out = s.link->statistics(), in = s.at_b.last->statistics();
  CHECK(out.wire_sent == in.wire_received);
  CHECK(out.payload_sent == in.payload_received);
  CHECK(out.frames_sent == in.frames_received);
  CHECK(out.busy_sending > 0);
}

TEST_CASE("tcp: both sides agree on the end, and a lost peer is named at once") {
  two_sockets s;
  s.connect();
  REQUIRE(s.at_a.opened == 1);
  SECTION("close") {
    const auto data = pattern(3'000'000);
    s.link->send(message_of(data));
    s.link->close(fl::errc::ok, "done");
    REQUIRE(s.wait([&] { return s.at_a.closed.empty() || s.at_b.closed.empty(); }));
    REQUIRE(s.at_b.messages.size() == 1);
    CHECK((s.at_b.messages[0].payload == data));
    CHECK(s.at_a.closed[0].code() == fl::errc::ok);
    CHECK(s.at_b.closed[0].code() == fl::errc::ok);
    CHECK(contains(s.at_b.closed[0].what(), "peer 'a' (127.0.0.1:"));
    CHECK(contains(s.at_b.closed[0].what(), "closed the connection: done"));
  }
  SECTION("abort") {
    const fl::nanoseconds start = s.loop.now();
    s.link->abort(fl::errc::peer_lost, "no heartbeat");
    REQUIRE(s.wait([&] { return s.at_a.closed.empty() || s.at_b.closed.empty(); }));
    CHECK(s.at_b.closed[0].code() == fl::errc::peer_lost);
    CHECK(contains(s.at_b.closed[0].what(), "peer 'a'"));
    CHECK(s.loop.now() - start < fl::second);
  }
  SECTION("the transport goes") {
    s.a.reset();
    CHECK_FALSE(s.link->is_open());
    REQUIRE(s.wait([&] { return s.at_b.closed.empty(); }));
    CHECK(s.at_b.closed[0].code() == fl::errc::peer_lost);
    CHECK(s.at_a.closed.empty());
  }
}

TEST_CASE("tcp: a peer that takes nothing is found within the bound") {
  auto o = named("a");
  o.stall_timeout = 300 * fl::millisecond;
  two_sockets s(o);
  // The other end is on a reactor that stops running.
  fl::asio_reactor frozen;
  recorder asleep(frozen);
  fl::asio_tcp other(frozen, named("sleeper"));
  const fl::address where = other.listen({"127.0.0.1", 0}, asleep);
  const auto link = s.a->connect({.to = where, .whom = "sleeper"}, s.at_a);
  for (int i = 0; i < 2000 && (s.at_a.opened == 0 || asleep.opened == 0); ++i) {
    s.run(fl::millisecond);
    frozen.run_while([] { return true; }, fl::millisecond);
  }
  REQUIRE(link->is_open());
  const auto data = pattern(64 << 20);
  link->send(message_of(data));
  REQUIRE(s.wait([&] { return s.at_a.closed.empty(); }));
  CHECK(s.at_a.closed[0].code() == fl::errc::timeout);
  CHECK(contains(s.at_a.closed[0].what(), "peer 'sleeper'"));
  CHECK(contains(s.at_a.closed[0].what(), "took nothing of a frame for 300 ms"));
}

TEST_CASE("tcp: refusals name the differing key on both sides") {
  auto o = named("a");
  o.self.config[0].value = "0.002";
  two_sockets s(o);
  const fl::nanoseconds start = s.loop.now();
  s.link = s.a->connect({.to = s.where, .whom = "b"}, s.at_a);
  REQUIRE(s.wait([&] { return s.at_a.closed.empty() || s.at_b.rejected.empty(); }));
  CHECK(s.loop.now() - start < fl::second);
  for (const fl::error& e : {s.at_a.closed[0], s.at_b.rejected[0]}) {
    CHECK(e.code() == fl::errc::handshake);
    CHECK(contains(e.what(), "'learning_rate' is '0.002' at 'a' and '0.001' at 'b'"));
  }
}

TEST_CASE("tcp: localhost, IPv6, real ports") {
  SECTION("localhost serves both families at one port") {
    two_sockets s(named("a"), named("b"), "localhost:0");
    CHECK(s.where.port != 0);
    int opened = 0;
    for (const char* host : {"127.0.0.1", "::1", "localhost"}) {
      recorder r(s.loop);
      const auto c = s.a->connect({.to = {host, s.where.port}, .whom = "b"}, r);
      s.wait([&] { return r.opened == 0 && r.closed.empty(); });
      if (r.opened == 0) {
        CHECK(std::string(host) == "::1");  // a machine without IPv6
        continue;
      }
      ++opened;
      c->abort(fl::errc::ok, "seen");
      s.wait([&] { return r.closed.empty(); });
    }
    CHECK(opened >= 2);
  }
  SECTION("localhost finds a listener of either family") {
    try {
      two_sockets s(named("a"), named("b"), "[::1]:0");
      s.where.host = "localhost";
      s.connect();
      CHECK(s.at_a.opened == 1);
      CHECK(contains(s.link->label(), "[::1]:"));
    } catch (const fl::error& e) {
      CHECK(contains(e.what(), "[::1]"));  // a machine without IPv6
    }
  }
}

TEST_CASE("tcp: the announced address carries the real port") {
  auto ob = named("b");
  two_sockets s(named("a"), ob);
  s.connect();
  CHECK(s.link->remote().announce == fl::to_string(s.where));
  CHECK(s.at_b.last->remote().announce.empty());
  auto oc = named("c");
  oc.announce = {"gateway.example", 0};
  fl::asio_tcp c(s.loop, oc);
  const fl::address at_c = c.listen({"127.0.0.1", 0}, s.at_b);
  const auto link = s.a->connect({.to = at_c, .whom = "c"}, s.at_a);
  REQUIRE(s.wait([&] { return !link->is_open(); }));
  CHECK(link->remote().announce == "gateway.example:" + std::to_string(at_c.port));
}

TEST_CASE("tcp: what cannot be bound is an error with address, port and remedy") {
  two_sockets s;
  const std::string busy = problem([&] { s.a->listen(s.where, s.at_a); });
  CHECK(contains(busy, fl::to_string(s.where)));
  CHECK(contains(busy, "in use; choose another port, or 0"));
  const std::string open = problem([&] { s.a->listen({"0.0.0.0", 0}, s.at_a); });
  CHECK(contains(open, "will not bind 0.0.0.0:0"));
  CHECK(contains(open, "--insecure-network"));
  CHECK(contains(problem([&] { s.a->listen({"::", 0}, s.at_a); }), "will not bind [::]:0"));
  auto o = named("c");
  o.insecure_network = true;
  fl::asio_tcp c(s.loop, o);
  const std::string foreign = problem([&] { c.listen({"192.0.2.77", 4000}, s.at_a); });
  CHECK(contains(foreign, "cannot bind 192.0.2.77:4000"));
  CHECK(contains(foreign, "no such address; it has 127.0.0.1"));
}

TEST_CASE("tcp: what cannot be reached is an error with address, port and remedy, in time") {
  two_sockets s;
  const auto failure = [&](const fl::address& to, fl::asio_tcp& from) {
    recorder r(s.loop);
    const auto c = from.connect({.to = to, .whom = "the broker", .timeout = 2 * fl::second}, r);
    s.wait([&] { return r.closed.empty(); });
    REQUIRE(r.closed.size() == 1);
    CHECK(r.opened == 0);
    CHECK(contains(r.closed[0].what(), "'the broker' (" + fl::to_string(to) + ")"));
    return r.closed[0];
  };
  s.b->stop_listening();
  const fl::error refused = failure(s.where, *s.a);
  CHECK(refused.code() == fl::errc::network);
  CHECK(contains(refused.what(), "refused"));
  CHECK(contains(refused.what(), "start the other side first"));
  const fl::error beyond = failure({"192.0.2.1", 4000}, *s.a);
  CHECK(contains(beyond.what(), "--insecure-network"));
  const fl::error unknown = failure({"no-such-host.invalid", 4000}, *s.a);
  CHECK((contains(unknown.what(), "cannot resolve 'no-such-host.invalid'") || unknown.code() == fl::errc::timeout));
}

TEST_CASE("tcp: a dial that retries waits for a late listener, and no longer than its timeout") {
  two_sockets s;
  const fl::address where = s.where;
  s.b->stop_listening();
  recorder r(s.loop);
  const fl::nanoseconds start = s.loop.now();
  s.a->connect({.to = where, .whom = "the broker", .timeout = 300 * fl::millisecond, .retry = true}, r);
  REQUIRE(s.wait([&] { return r.closed.empty(); }));
  CHECK(s.loop.now() - start >= 300 * fl::millisecond);
  CHECK(r.closed[0].code() == fl::errc::timeout);
  CHECK(contains(r.closed[0].what(), "waited 300 ms for 'the broker'"));
  CHECK(contains(r.closed[0].what(), "nobody listens there"));
  s.a->connect({.to = where, .whom = "the broker", .timeout = 5 * fl::second, .retry = true}, s.at_a);
  s.run(120 * fl::millisecond);
  s.b->listen(where, s.at_b);
  CHECK(s.wait([&] { return s.at_a.opened == 0; }));
}

TEST_CASE("tcp: a listener that never answers is given up in time") {
  fl::asio_reactor loop;
  asio::ip::tcp::acceptor silent(loop.context(), {asio::ip::address_v4::loopback(), 0});
  fl::asio_tcp a(loop, named("a"));
  recorder r(loop);
  a.connect({.to = {"127.0.0.1", silent.local_endpoint().port()}, .whom = "broker", .timeout = 200 * fl::millisecond}, r);
  REQUIRE(loop.run_while([&] { return r.closed.empty(); }, 5 * fl::second));
  CHECK(r.closed[0].code() == fl::errc::timeout);
  CHECK(contains(r.closed[0].what(), "it accepted the connection and sent no welcome"));
}

TEST_CASE("tcp: beyond loopback, and what is announced there") {
  const std::string mine = outer_address();
  if (mine.empty()) {
    WARN("skipped: this machine has only loopback");
    return;
  }
  auto ob = named("b"), oa = named("a");
  oa.insecure_network = ob.insecure_network = true;
  two_sockets s(oa, ob, mine + ":0");
  s.connect();
  REQUIRE(s.at_a.opened == 1);
  CHECK(s.link->remote().announce == fl::to_string(s.where));
  auto liar = named("liar");
  liar.insecure_network = true;
  liar.announce = {"127.0.0.1", 4000};
  fl::asio_tcp c(s.loop, liar);
  recorder r(s.loop);
  c.connect({.to = s.where, .whom = "b"}, r);
  REQUIRE(s.wait([&] { return r.closed.empty() || s.at_b.rejected.empty(); }));
  CHECK(contains(r.closed[0].what(), "127.0.0.1:4000 is announced to " + mine));
  CHECK(contains(s.at_b.rejected[0].what(), "127.0.0.1:4000"));
  // Bound to every interface, it announces the one that the other side sees.
  fl::asio_tcp d(s.loop, named("d") /* loopback only */);
  auto oe = named("e");
  oe.insecure_network = true;
  fl::asio_tcp e(s.loop, oe);
  const fl::address any = e.listen({"0.0.0.0", 0}, s.at_b);
  const auto link = d.connect({.to = {"127.0.0.1", any.port}, .whom = "e"}, s.at_a);
  REQUIRE(s.wait([&] { return !link->is_open(); }));
  CHECK(link->remote().announce == "127.0.0.1:" + std::to_string(any.port));
}

TEST_CASE("tcp: two reactors on two threads") {
  fl::asio_reactor there;
  recorder at_there(there);
  fl::asio_tcp b(there, named("b"));
  const fl::address where = b.listen({"127.0.0.1", 0}, at_there);
  std::thread thread([&] { there.run(); });
  {
    fl::asio_reactor here;
    recorder at_here(here);
    fl::asio_tcp a(here, named("a"));
    const auto link = a.connect({.to = where, .whom = "b"}, at_here);
    CHECK(here.run_while([&] { return at_here.opened == 0; }, 10 * fl::second));
    const auto data = pattern(2'000'000);
    for (int i = 0; i < 5; ++i) link->send(message_of(data, fl::u64(i)));
    link->close();
    CHECK(here.run_while([&] { return at_here.closed.empty(); }, 10 * fl::second));
    CHECK(at_here.sent.size() == 5);
  }
  there.stop();
  thread.join();
  CHECK(at_there.messages.size() == 5);
}

TEST_CASE("tcp: no file descriptor left is a lack of resources, with what to do") {
  two_sockets s;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  fl::errc code = fl::errc::ok;
  std::string text;
  try {
    s.a->listen({"127.0.0.1", 0}, s.at_a);
  } catch (const fl::error& e) {
    code = e.code();
    text = e.what();
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(code == fl::errc::resource);
  CHECK(contains(text, "cannot bind 127.0.0.1:0"));
  CHECK(contains(text, "ulimit -n"));
}
