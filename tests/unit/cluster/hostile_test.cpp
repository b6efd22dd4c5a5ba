// SPDX-License-Identifier: Apache-2.0
// Peers and brokers that do not keep to the protocol, behind a valid handshake: the other side ends with an error that
// names them, without a crash, and honest bystanders end too.
#include <fusionllm/cluster/links.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;
using fl::control_kind;

namespace {

// Speaks the transport, and then says whatever a test tells it to.
struct puppet final : fl::connection_handler {
  puppet(virtual_cluster& c, const char* role, const std::string& n, u32 rank, bool beats = true)
      : name(n), node(c.network().add(n)), net(c.network(), n, c.hello(role, n, rank)), links(node, fl::second, 3600 * fl::second, [](const fl::error&) {}), beating(beats) {}
  void dial(const std::string& host, fl::u16 port) { calls.push_back(net.connect({{host, port}, host, 10 * fl::second, true}, *this)); }

  void on_open(fl::connection& c) override {
    if (beating) links.add(c);
    if (opened) opened(c);
  }
  void on_message(fl::connection& c, const fl::frame_header& h, fl::const_byte_span payload) override {
    if (heard) heard(c, h, payload);
  }
  void on_closed(fl::connection& c, const fl::error& e) override {
    links.remove(c);
    why = e;
  }

  std::string name;
  fl::virtual_node& node;
  fl::in_process net;
  fl::watched_links links;
  bool beating;
  std::vector<fl::connection_ptr> calls;
  std::function<void(fl::connection&)> opened;
  std::function<void(fl::connection&, const fl::frame_header&, fl::const_byte_span)> heard;
  fl::error why{fl::errc::ok, ""};
};

void say(fl::connection& c, fl::frame_kind kind, u32 edge, std::vector<std::byte> bytes = {}, u32 part = 0, u64 step = 0, u32 source = 1) {
  fl::outgoing m;
  m.header.kind = kind;
  m.header.edge = edge;
  m.header.micro_batch = part;
  m.header.step = step;
  m.header.source = source;
  m.owned = std::move(bytes);
  c.send(std::move(m));
}
template <class T>
std::vector<std::byte> control(const T& x) {
  return fl::encode_control(x);
}

// A run of two of which rank 1 is a puppet that keeps to the protocol up to a point.
struct infiltrated {
  virtual_cluster c{small_run(2, 6)};
  puppet p{c, "peer", "puppet", 1};
  control_kind until;  ///< its last honest word
  std::function<void(fl::connection& broker, fl::connection* peer)> turn;
  fl::connection *broker = nullptr, *peer = nullptr;

  explicit infiltrated(control_kind last) : until(last) {
    p.opened = [this](fl::connection& x) {
      if (x.remote().role == "broker") {
        broker = &x;
        fl::send_control(x, control_kind::joining, fl::joining{"reference", 0, 1});
        reached(control_kind::joining);
      } else {
        peer = &x;
        fl::send_control(*broker, control_kind::connected, fl::nothing{});
        reached(control_kind::connected);
      }
    };
    p.heard = [this](fl::connection&, const fl::frame_header& h, fl::const_byte_span) {
      if (h.kind != fl::frame_kind::control) return;
      if (control_kind(h.edge) == control_kind::roster) p.dial("peer0", 2);
      if (control_kind(h.edge) == control_kind::assignment) {
        fl::send_control(*broker, control_kind::ready, fl::nothing{});
        reached(control_kind::ready);
      }
    };
  }
  void reached(control_kind k) {
    if (k == until && turn) turn(*broker, peer);
  }
  // Runs; everyone ends, with this in the broker's error.
  void check(fl::errc code, const std::string& a, const std::string& b = "") {
    c.join(0);
    p.dial("broker", 1);
    const bool ended = c.run(100 * fl::second);
    INFO("broker: " << c.why.what() << "\npeer0: " << c.at(0).why.what());
    REQUIRE(ended);
    CHECK(c.why.code() == code);
    CHECK(std::string(c.why.what()).find(a) != std::string::npos);
    CHECK(std::string(c.why.what()).find(b) != std::string::npos);
    CHECK(c.at(0).why.code() != fl::errc::ok);
    CHECK(c.broker_ends == 1);
    CHECK(c.at(0).ends == 1);
  }
};

}  // namespace

TEST_CASE("what is out of turn, of unknown kind or malformed ends the run by the name of who said it") {
  using kind = fl::frame_kind;
  struct word {
    control_kind until;
    kind k;
    u32 edge;
    std::vector<std::byte> bytes;
    const char* text;
  };
  const auto nothing = control(fl::nothing{});
  fl::report far_off;
  far_off.step = 3;
  fl::report to_nobody;
  to_nobody.traffic = {{77, 1, 1, 1, 1, 1}};
  const word words[] = {
      {control_kind::connected, kind::control, u32(control_kind::joining), control(fl::joining{"reference", 0, 1}), "out of turn"},
      {control_kind::connected, kind::control, u32(control_kind::ready), nothing, "out of turn"},
      {control_kind::connected, kind::control, u32(control_kind::report), control(fl::report{}), "out of turn"},
      {control_kind::connected, kind::control, u32(control_kind::measured), control(fl::measured{}), "out of turn"},
      {control_kind::ready, kind::control, u32(control_kind::ready), nothing, "out of turn"},
      {control_kind::ready, kind::control, u32(control_kind::connected), nothing, "out of turn"},
      {control_kind::ready, kind::control, u32(control_kind::grant), control(fl::step_number{5}), "not for a broker"},
      {control_kind::ready, kind::control, 999, nothing, "kind 999"},
      {control_kind::ready, kind::control, u32(control_kind::report), control(far_off), "out of turn"},
      {control_kind::ready, kind::control, u32(control_kind::report), std::vector<std::byte>(7, std::byte(0xFF)), "control message"},
      {control_kind::ready, kind::activation, 0, std::vector<std::byte>(8), "kind 18"},
      {control_kind::ready, kind::bulk, 0, std::vector<std::byte>(61 * 16 * 4), "was not asked of it"},
      {control_kind::ready, kind::bulk, 9999, std::vector<std::byte>(8), "was not asked of it"},
  };
  for (const auto& w : words) {
    infiltrated x(w.until);
    x.turn = [&](fl::connection& broker, fl::connection*) {
      say(broker, w.k, w.edge, w.bytes);
    };
    INFO("kind " << int(w.k) << ", edge " << w.edge);
    x.check(fl::errc::protocol, "puppet", w.text);
  }
}

TEST_CASE("reports of other steps, of nobody, or of none at all") {
  fl::report far_off;
  far_off.step = 3;
  fl::report to_nobody;
  to_nobody.traffic = {{77, 1, 1, 1, 1, 1}};
  for (int k = 0; k < 2; ++k) {
    infiltrated x(control_kind::ready);
    x.turn = [&](fl::connection& broker, fl::connection*) {
      x.p.node.after(fl::second, [&] { fl::send_control(broker, control_kind::report, k ? to_nobody : far_off); });
    };
    x.check(fl::errc::protocol, "puppet", k ? "traffic to peer 77" : "reports step 3");
  }
  infiltrated silent(control_kind::ready);  // keeps its heart beating and does nothing
  silent.check(fl::errc::timeout, "peer0 has been waiting 8 s for puppet for the cotangent");
}

TEST_CASE("a peer that stays in a phase for ever is named after the phase's bound") {
  for (auto [until, text] : {std::pair{control_kind::joining, "did not reach all other peers"}, {control_kind::connected, "did not get ready"}}) {
    infiltrated x(until);
    x.p.heard = [&, honest = x.p.heard, until = until](fl::connection& c, const fl::frame_header& h, fl::const_byte_span b) {
      if (until == control_kind::connected && control_kind(h.edge) != control_kind::assignment) honest(c, h, b);
    };
    x.check(fl::errc::timeout, "'puppet'", text);
    CHECK(x.c.ended_at < 30 * fl::second);
  }
}

TEST_CASE("tensors that the plan does not have end the run by the name of who sent them") {
  using kind = fl::frame_kind;
  struct word {
    kind k;
    u32 edge, part;
    u64 step;
    u32 source;
    std::size_t bytes;
    const char* text;
  };
  for (const word& w : {word{kind::activation, 500, 0, 0, 1, 8, "edge 500"}, word{kind::cotangent, 0, 99, 0, 1, 8, "micro-batch 99"},
                        word{kind::gradient, 0, 3, 7, 1, 8, "step 7"}, word{kind::gradient, 0, 3, 0, 1, 8, "sends 8 bytes"},
                        word{kind::gradient, 999, 0, 0, 1, 8, "parameter 999"}, word{kind::parameter, 0, 0, 0, 1, 61 * 16 * 4, "a parameter"},
                        word{fl::summary_kind, 0, 0, 0, 1, 8, "a summary"}, word{kind::activation, 0, 0, 0, 0, 8, "as peer 0"},
                        word{kind(900), 0, 0, 0, 1, 8, "kind 900"}, word{kind::control, u32(control_kind::grant), 0, 0, 1, 8, "not for peers"},
                        word{kind::control, u32(control_kind::probe_answer), 0, 0, 1, 9, "not for peers"}}) {
    infiltrated x(control_kind::ready);
    x.turn = [&](fl::connection&, fl::connection* peer) {
      // Once the broker has granted steps, so that an engine is there.
      x.p.node.after(fl::second, [&w, peer] { say(*peer, w.k, w.edge, std::vector<std::byte>(w.bytes), w.part, w.step, w.source); });
    };
    INFO("kind " << int(w.k) << ", edge " << w.edge);
    x.check(fl::errc::protocol, "puppet", w.text);
  }
}

TEST_CASE("random messages from a peer never crash the others, who all end") {
  for (u64 seed = 0; seed < 60; ++seed) {
    infiltrated x(seed % 3 == 0 ? control_kind::connected : control_kind::ready);
    u64 n = 0;
    const auto draw = [&](u32 below) { return fl::random_word({seed, 4, 0, 0}, n++) % below; };
    x.turn = [&](fl::connection& broker, fl::connection* peer) {
      for (int k = 0; k < 20; ++k) {
        auto& to = draw(2) || !peer ? broker : *peer;
        const u32 source = draw(4) ? 1 : draw(5);
        std::vector<std::byte> bytes(draw(3) ? draw(64) : draw(5000));
        for (auto& b : bytes) b = std::byte(draw(draw(2) ? 256 : 2));
        const auto kind = fl::frame_kind(draw(3) ? 16 + draw(7) : 64 + draw(3));
        x.p.node.after(fl::nanoseconds(draw(400)) * fl::millisecond, [&to, kind, bytes, e = draw(20), m = draw(6), s = draw(3), source] { say(to, kind, e, bytes, m, s, source); });
      }
    };
    x.c.join(0);
    x.p.dial("broker", 1);
    const bool ended = x.c.run(100 * fl::second);
    INFO("seed " << seed << ", broker: " << x.c.why.what() << "\npeer0: " << x.c.at(0).why.what());
    REQUIRE(ended);
    CHECK(x.c.why.code() != fl::errc::ok);
    CHECK(x.c.why.code() != fl::errc::internal);
    CHECK(x.c.at(0).why.code() != fl::errc::internal);
    CHECK(std::string(x.c.why.what()).find("puppet") != std::string::npos);
  }
}

TEST_CASE("a failure message with a code that is none, or with control characters, is still a failure") {
  for (const u32 code : {0u, 17u, 129u, 0xFFFFFFFFu}) {
    infiltrated x(control_kind::connected);
    x.turn = [&](fl::connection& broker, fl::connection*) { fl::send_control(broker, control_kind::failed, fl::failure{code, "bell \a and \x1b[2J"}); };
    x.check(fl::errc::protocol, "bell ");
    CHECK(std::string(x.c.why.what()).find('\x1b') == std::string::npos);
  }
  infiltrated x(control_kind::connected);
  x.turn = [&](fl::connection& broker, fl::connection*) { fl::send_control(broker, control_kind::failed, fl::failure{6, "puppet has no data"}); };
  x.check(fl::errc::data, "puppet has no data");
}

TEST_CASE("peers turn away brokers' words that are out of turn") {
  using kind = fl::frame_kind;
  struct word {
    u32 edge;
    std::vector<std::byte> bytes;
    const char* text;
  };
  fl::roster two{{{0, "peer0", "peer0:2"}, {5, "x", "peer0:3"}}, {}};
  fl::roster many{{{0, "peer0", "peer0:2"}}, {}};
  for (const word& w : {word{u32(control_kind::grant), control(fl::step_number{5}), "out of turn"}, word{u32(control_kind::collect), control(fl::step_number{5}), "out of turn"},
                        word{u32(control_kind::assignment), control(fl::assignment{}), "out of turn"}, word{u32(control_kind::measure), {}, "control message"},
                        word{u32(control_kind::restored), control(fl::step_number{5}), "out of turn"}, word{u32(control_kind::roster), control(two), "entry 1"},
                        word{u32(control_kind::roster), control(many), "1 peers, expected 2"}, word{u32(control_kind::report), {}, "not for peers"},
                        word{u32(control_kind::roster), std::vector<std::byte>(30, std::byte(0x7F)), "claims"}}) {
    virtual_cluster c(small_run(2, 6));
    c.network().kill("broker");
    puppet p(c, "broker", "false-broker", 0);
    p.net.listen({"false-broker", 1}, p);
    p.opened = [&](fl::connection& x) { say(x, kind::control, w.edge, w.bytes); };
    fl::peer_options o;
    o.name = "honest";
    o.bind = {"honest", 2};
    o.broker = {"false-broker", 1};
    auto& node = c.network().add("honest");
    fl::in_process net(c.network(), "honest", c.hello("peer", "honest", 0));
    fl::inline_queue queue(node);
    struct host final : fl::peer_host {
      void load(u64, std::span<const int>, fl::step_data&) override {}
      void on_end(const fl::error& e) override { why = e; }
      fl::error why{fl::errc::ok, ""};
    } h;
    fl::peer_node peer(case_binding(), small_run(2, 6), o, net, nullptr, queue, h);
    peer.start();
    c.time().run_while([&] { return !peer.ended(); }, 60 * fl::second);
    INFO(w.edge << ": " << h.why.what());
    CHECK(h.why.code() == fl::errc::protocol);
    CHECK(std::string(h.why.what()).find(w.text) != std::string::npos);
  }
}
