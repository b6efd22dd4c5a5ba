// SPDX-License-Identifier: Apache-2.0
// Faults at every time of a run, drawn from a seed: whatever happens, everyone who is alive ends within the bounds that
// broker.hpp and peer.hpp state, with an error that names whom it waited for; and the same seed gives the same end.
#include <fusionllm/cluster/peer.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;
using fl::nanoseconds;

namespace {

enum class fault { kill, power, freeze, cut_from, cut_to, reset };
constexpr const char* names[] = {"kill", "power", "freeze", "cut from", "cut to", "reset"};

fl::cluster_settings short_run() {
  auto s = small_run(3, 6);
  s.checkpoint_interval = 3;
  return s;
}
nanoseconds length_of_run() {
  static const nanoseconds t = [] {
    virtual_cluster c(short_run());
    c.join_all();
    c.run();
    return c.ended_at;
  }();
  return t;
}

struct outcome {
  fl::errc code;
  std::string text;
  nanoseconds at;
  u64 events;
  bool operator==(const outcome&) const = default;
};

// One fault: who and when follow from the seed.
outcome strike(fault what, u64 seed) {
  u64 n = 0;
  const auto draw = [&](u32 below) { return fl::random_word({seed, 3, 0, 0}, n++) % below; };
  virtual_cluster c(short_run(), seed);
  c.join_all();
  const u32 rank = draw(3);
  const std::string victim = "peer" + std::to_string(rank), nameless = "peer " + std::to_string(rank) + " did not join";
  std::string other = draw(3) == 0 ? "broker" : "peer" + std::to_string(draw(3));
  if (other == victim) other = "broker";
  const nanoseconds when = nanoseconds(draw(1000)) * length_of_run() / 1000;
  auto& net = c.network();
  c.time().at(when, [&] {
    switch (what) {
      case fault::kill: return net.kill(victim);
      case fault::power: return net.kill(victim, fl::death::power);
      case fault::freeze: return net.freeze(victim);
      case fault::cut_from: return net.cut(victim, other);
      case fault::cut_to: return net.cut(other, victim);
      case fault::reset: return net.reset(victim, other);
    }
  });
  const bool ended = c.run();
  INFO(names[int(what)] << ", seed " << seed << ": " << victim << " (" << other << ") at " << when / fl::microsecond << " us of " << length_of_run() / fl::microsecond
                        << "\nbroker: " << c.why.what());
  for (int i = 0; i < 3; ++i) UNSCOPED_INFO(c.at(i).name << " at " << c.at(i).ended_at / fl::millisecond << " ms: " << c.at(i).why.what());
  REQUIRE(ended);
  CHECK(c.broker_ends == 1);
  const auto s = short_run();
  // A closed connection is seen at once, silence after its timeout and at the next heartbeat; a peer that had not yet
  // joined or connected is waited for.
  const nanoseconds seen = what == fault::kill || what == fault::reset ? fl::second : s.silence_timeout + 2 * s.heartbeat;
  const bool gathering = c.steps.empty();
  const nanoseconds bound = (std::max)(when + seen, gathering ? 2 * s.gather_timeout : when + seen);
  CHECK(c.ended_at <= bound);
  for (int i = 0; i < 3; ++i) {
    const auto& p = c.at(i);
    CHECK(p.ends <= 1);
    if (!p.node.is_alive() || p.node.is_stopped()) continue;
    CHECK(p.ends == 1);
    CHECK(p.ended_at <= bound + s.silence_timeout + 2 * s.heartbeat);
    if (c.why.code() != fl::errc::ok) CHECK(p.why.code() != fl::errc::ok);
  }
  if (c.why.code() == fl::errc::ok) {
    CHECK(c.states.back().step == 6);  // it came too late to matter
  } else {
    const std::string text = c.why.what();
    const bool named = text.find(victim) != std::string::npos || text.find(nameless) == 0 || (what >= fault::cut_from && text.find(other) != std::string::npos);
    CHECK(named);
    const bool kind = c.why.code() == fl::errc::peer_lost || c.why.code() == fl::errc::timeout || c.why.code() == fl::errc::network;
    CHECK(kind);
  }
  if (what == fault::freeze && c.why.code() != fl::errc::ok) {
    net.thaw(victim);  // it finds itself alone and ends too
    CHECK(c.run(60 * fl::second));
  }
  return {c.why.code(), c.why.what(), c.ended_at, c.time().events()};
}

void strike_often(fault what) {
  int hit = 0;
  for (u64 seed = 1; seed <= 30; ++seed) {
    const outcome o = strike(what, seed);
    hit += o.code != fl::errc::ok;
    if (seed % 6 == 0) CHECK(strike(what, seed) == o);
  }
  CHECK(hit >= 15);
}

}  // namespace

TEST_CASE("a killed peer ends the run at once, by name") { strike_often(fault::kill); }
TEST_CASE("a peer that loses power is found by its silence") { strike_often(fault::power); }
TEST_CASE("a stopped peer is found by its silence") { strike_often(fault::freeze); }
TEST_CASE("a link that carries nothing one way is found") { strike_often(fault::cut_from); }
TEST_CASE("a link that carries nothing the other way is found") { strike_often(fault::cut_to); }
TEST_CASE("a connection that breaks ends the run at once") { strike_often(fault::reset); }

TEST_CASE("a stop shorter than the silence that is allowed changes nothing but time") {
  virtual_cluster plain(short_run()), c(short_run());
  plain.join_all();
  c.join_all();
  REQUIRE(plain.run());
  c.time().at(length_of_run() / 2, [&] { c.network().freeze("peer1"); });
  c.time().at(length_of_run() / 2 + 3 * fl::second, [&] { c.network().thaw("peer1"); });
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::ok);
  CHECK(c.states == plain.states);
  CHECK(c.ended_at > 3 * fl::second);
}

TEST_CASE("when the broker dies, stops or is cut off, every peer ends and names it") {
  for (int how = 0; how < 4; ++how)
    for (int k = 0; k < 6; ++k) {
      virtual_cluster c(short_run(), u64(how * 10 + k));
      c.join_all();
      c.time().at(length_of_run() * k / 6, [&] {
        if (how == 0) c.network().kill("broker");
        if (how == 1) c.network().kill("broker", fl::death::power);
        if (how == 2) c.network().freeze("broker");
        if (how == 3)
          for (int i = 0; i < 3; ++i) c.network().cut("broker", "peer" + std::to_string(i));
      });
      c.time().run_while([&] { return c.at(0).ends + c.at(1).ends + c.at(2).ends < 3; }, 100 * fl::second);
      bool named = false;
      for (int i = 0; i < 3; ++i) {
        INFO(how << ' ' << k << ": " << c.at(i).why.what());
        CHECK(c.at(i).ends == 1);
        CHECK(c.at(i).why.code() != fl::errc::ok);
        named = named || std::string(c.at(i).why.what()).find("broker") != std::string::npos;
      }
      CHECK(named);
    }
}

TEST_CASE("a peer that never joins is named, and those that did are told") {
  virtual_cluster c(short_run());
  c.join(0);
  c.join(2);
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::timeout);
  CHECK(std::string(c.why.what()).find("peer 1 did not join within 20 s") == 0);
  CHECK(c.ended_at == 20 * fl::second);
  for (int i = 0; i < 2; ++i) CHECK(std::string(c.at(i).why.what()).find("peer 1 did not join") != std::string::npos);
}

TEST_CASE("of two peers with one rank the second is turned away, and the run goes on") {
  for (bool together : {true, false}) {
    virtual_cluster c(short_run());
    auto& first = c.join(1, "first");
    if (!together) c.time().run_until(fl::second / 2);
    auto& second = c.join(1, "second");
    c.join(0);
    c.join(2);
    REQUIRE(c.run());
    CHECK(c.why.code() == fl::errc::ok);
    const int ok = (first.why.code() == fl::errc::ok) + (second.why.code() == fl::errc::ok);
    CHECK(ok == 1);
    const auto& refused = first.why.code() == fl::errc::ok ? second : first;
    CHECK(refused.why.code() == fl::errc::handshake);
    CHECK(std::string(refused.why.what()).find("rank 1 is taken by") != std::string::npos);
  }
}

TEST_CASE("a peer that comes when the run has begun is told so") {
  virtual_cluster c(short_run());
  c.join_all();
  c.run_to_step(2);
  auto& late = c.join(2, "late");
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::ok);
  CHECK(late.why.code() == fl::errc::handshake);
}

TEST_CASE("a peer that leaves before the run has begun may come again") {
  virtual_cluster c(short_run());
  c.join(0);
  auto& first = c.join(1, "first");
  c.time().run_until(fl::second);
  first.it->break_off(fl::error(fl::errc::interrupted, "first was stopped by its user"));
  c.time().run_until(2 * fl::second);
  CHECK(c.broker_ends == 1);  // who said that it fails ends the run
  CHECK(c.why.code() == fl::errc::interrupted);

  virtual_cluster d(short_run());
  d.join(0);
  d.join(1, "first");
  d.time().run_until(fl::second);
  d.network().kill("first");  // who is merely gone may come again
  d.time().run_until(2 * fl::second);
  d.join(1, "second");
  d.join(2);
  REQUIRE(d.run());
  CHECK(d.why.code() == fl::errc::ok);
}

TEST_CASE("peers of different precision cannot train together") {
  virtual_cluster c(short_run());
  c.join(0, "", "reference");
  c.join(1, "", "reference_f64");
  c.join(2, "", "reference");
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::config);
  CHECK(std::string(c.why.what()).find("use devices of one precision") != std::string::npos);
  virtual_cluster d(short_run());
  for (u32 i = 0; i < 3; ++i) d.join(i, "", "reference_f64");
  REQUIRE(d.run());
  CHECK(d.why.code() == fl::errc::ok);
}
