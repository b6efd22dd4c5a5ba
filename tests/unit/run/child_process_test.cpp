// SPDX-License-Identifier: Apache-2.0
// A child is this program again, told by a variable what to do: see the hidden test at the end.
#include <fusionllm/run/child_process.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

constexpr const char* role = "FUSIONLLM_TEST_CHILD";

std::unique_ptr<fl::child_process> child(const std::string& does, std::vector<std::string> variables = {}) {
  variables.push_back(std::string(role) + "=" + does);
  return std::make_unique<fl::child_process>("peer-1", std::vector<std::string>{"unit_run", "what children do"}, variables);
}

/// Within a minute: where sanitized tests run side by side a process takes long to begin.
template <class F>
bool soon(F&& f) {
  for (int i = 0; i < 12000; ++i) {
    if (f()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}
bool ends(fl::child_process& c) {
  return soon([&] { return !c.running(); });
}
/// The number that a running child says.
int number_of(fl::child_process& c) {
  REQUIRE(soon([&] { return c.last_line().find("ready") != std::string::npos; }));
  return std::atoi(c.last_line().c_str());
}
/// Whether a process has ended, also where nobody has asked how.
bool gone(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos || text.substr(name_end + 2, 1) == "Z";
}

}  // namespace

TEST_CASE("a child that ends says how, with its last line") {
  const auto good = child("good");
  REQUIRE(ends(*good));
  CHECK(good->ended_well());
  CHECK(good->exit_status() == 0);
  CHECK(good->name() == "peer-1");
  const auto bad = child("bad");
  REQUIRE(ends(*bad));
  CHECK_FALSE(bad->ended_well());
  CHECK(bad->exit_status() == 6);
  CHECK(bad->ending() == "peer-1 ended with status 6: data file 'x' is missing");
  const auto silent = child("silent");
  REQUIRE(ends(*silent));
  CHECK(silent->ending() == "peer-1 ended with status 7");
  const auto loud = child("loud");
  REQUIRE(ends(*loud));
  CHECK(loud->ending() == "peer-1 ended with status 8: the end");
}

TEST_CASE("a signal is named; one to a child that has ended is nothing") {
  const auto c = child("wait");
  number_of(*c);
  CHECK(c->running());
  c->signal(SIGTERM);
  REQUIRE(ends(*c));
  CHECK_FALSE(c->ended_well());
  CHECK(c->exit_status() == 128 + SIGTERM);
  CHECK(c->ending() == "peer-1 was killed by signal 15 (Terminated)");
  c->signal(SIGKILL);
  CHECK(c->exit_status() == 128 + SIGTERM);
}

TEST_CASE("variables are added to those of the parent, or take their place; the child is in a group of its own") {
  ::setenv("FUSIONLLM_TEST_KEPT", "kept", 1);
  ::setenv("FUSIONLLM_TEST_PLACE", "old", 1);
  const auto c = child("tell", {"FUSIONLLM_TEST_PLACE=new", "FUSIONLLM_TEST_MORE=more"});
  ::unsetenv("FUSIONLLM_TEST_KEPT");
  ::unsetenv("FUSIONLLM_TEST_PLACE");
  REQUIRE(ends(*c));
  CHECK(c->last_line() == "kept new more group");
}

TEST_CASE("a child does not outlive its object; one that was moved from has none") {
  int pid = 0;
  {
    const auto c = child("wait");
    pid = number_of(*c);
    fl::child_process other(std::move(*c));
    CHECK_FALSE(c->running());
    CHECK(other.running());
    CHECK_FALSE(gone(pid));
  }
  CHECK(soon([&] { return gone(pid); }));
}

TEST_CASE("a child does not outlive its parent") {
  const auto parent = child("parent");
  const int grandchild = number_of(*parent);
  CHECK_FALSE(gone(grandchild));
  parent->signal(SIGKILL);
  REQUIRE(ends(*parent));
  CHECK(soon([&] { return gone(grandchild); }));
}

TEST_CASE("a child has no other child's file") {
  const auto first = child("wait");
  number_of(*first);
  const auto second = child("files");
  REQUIRE(ends(*second));
  CHECK(second->last_line() == "1");  // its own
}

TEST_CASE("what children do", "[.]") {
  const char* does = std::getenv(role);
  if (!does) return;
  const std::string what = does;
  std::signal(SIGTERM, SIG_DFL);  // not the test runner's
  const auto wait_here = [](int number) {
    std::fprintf(stderr, "%d ready\n", number);
    for (;;) ::pause();
  };
  if (what == "good") std::_Exit(0);
  if (what == "bad") std::fputs("warning: before\nerror: data file 'x' is missing\n\n", stderr), std::_Exit(6);
  if (what == "silent") std::_Exit(7);
  if (what == "loud") {
    for (int i = 0; i < 12000; ++i) std::fputs("a line of many\n", stderr);
    std::fputs("the end\n", stderr);
    std::_Exit(8);
  }
  if (what == "wait") wait_here(::getpid());
  if (what == "tell") {
    std::fprintf(stderr, "%s %s %s %s\n", std::getenv("FUSIONLLM_TEST_KEPT"), std::getenv("FUSIONLLM_TEST_PLACE"),
                 std::getenv("FUSIONLLM_TEST_MORE"), ::getpgrp() == ::getpid() ? "group" : "no group");
    std::_Exit(0);
  }
  if (what == "parent") {
    const auto c = child("wait");
    wait_here(number_of(*c));
  }
  if (what == "files") {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code none;
      count += std::filesystem::read_symlink(entry.path(), none).string().find("memfd:stderr") != std::string::npos;
    }
    std::fprintf(stderr, "%d\n", count);
    std::_Exit(0);
  }
  std::_Exit(99);
}
