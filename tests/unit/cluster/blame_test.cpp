// SPDX-License-Identifier: Apache-2.0
// Errors are told of whom they are: a peer's own data, the broker's own files, and of nobody when all have slept.
#include <fusionllm/cluster/links.hpp>

#include "catch.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {
bool says(const fl::error& e, const char* text) { return std::string(e.what()).find(text) != std::string::npos; }
}  // namespace

TEST_CASE("a peer without data names itself, in the first step as in a later one") {
  for (u64 step : {0u, 3u}) {
    virtual_cluster c(small_run(2, 6));
    c.join_all();
    if (step) c.run_to_step(step);
    c.at(1).no_data = fl::error(fl::errc::data, "the file is too short");
    REQUIRE(c.run());
    INFO("step " << step << ": " << c.why.what() << "; " << c.at(1).why.what());
    CHECK(c.at(1).why.code() == fl::errc::data);
    CHECK(std::string(c.at(1).why.what()) == "peer1: the file is too short");
    CHECK(c.why.code() == fl::errc::data);
    CHECK(says(c.why, "peer1: the file is too short"));
  }
}

TEST_CASE("a broker that cannot write down a step blames no peer") {
  virtual_cluster c(small_run(2, 6));
  c.join_all();
  c.no_log = fl::error(fl::errc::resource, "the disk is full");
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::resource);
  CHECK(std::string(c.why.what()) == "the disk is full");
  for (int i = 0; i < 2; ++i) CHECK(c.at(i).why.code() == fl::errc::resource);
}

TEST_CASE("a run whose processes all sleep for longer than the silence timeout goes on") {
  const auto s = small_run(2, 12);
  virtual_cluster c(s);
  c.join_all();
  c.run_to_step(4);
  const char* all[] = {"broker", "peer0", "peer1"};
  for (const char* name : all) c.network().freeze(name);
  c.time().at(c.time().now() + s.silence_timeout + s.silence_timeout / 2, [&] {
    for (const char* name : all) c.network().thaw(name);
  });
  REQUIRE(c.run());
  INFO(c.why.what());
  CHECK(c.why.code() == fl::errc::ok);
  CHECK(c.steps.size() == 12);
}

TEST_CASE("who takes nothing any more ends the run by an error, also when a timer is the first to find out") {
  auto s = small_run(2, 40);
  s.silence_timeout = s.step_timeout = 60 * fl::second;
  for (int which = 0; which < 2; ++which) {
    virtual_cluster c(s, 1, nullptr, 4);
    c.join_all();
    c.run_to_step(2);
    const char *from = which ? "peer1" : "broker", *to = which ? "broker" : "peer1";
    c.network().set_link(from, to, {.latency = 5 * fl::millisecond, .bits_per_second = 100});
    REQUIRE(c.run());
    const fl::error& why = which ? c.at(1).why : c.why;
    INFO(c.why.what() << "; " << c.at(1).why.what());
    CHECK(why.code() == fl::errc::resource);
    CHECK(says(why, "messages wait to be sent"));
    CHECK(says(why, which ? "broker" : "peer1"));
    for (int i = 0; i < 2; ++i) CHECK(c.at(i).ends == 1);
  }
}
