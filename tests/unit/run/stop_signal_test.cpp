// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/stop_signal.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("the first signal asks, the second ends the process") {
  for (int number : {SIGINT, SIGTERM}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const fl::stop_signal stop;
      if (stop.requested()) ::_exit(1);
      ::raise(number);
      if (!stop.requested()) ::_exit(2);
      ::raise(number);
      ::_exit(3);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == number);
  }
}

TEST_CASE("the end of the terminal or of the reader of the output asks once, however often it is told") {
  for (int number : {SIGHUP, SIGPIPE}) {
    const pid_t child = ::fork();
    if (child == 0) {
      {
        const fl::stop_signal stop;
        for (int i = 0; i < 3; ++i) ::raise(number);
        if (!stop.requested()) ::_exit(1);
      }
      if (number == SIGPIPE) ::raise(number);  // the summary is printed afterwards
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("what was ignored before, as under nohup, stays ignored") {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGHUP, SIG_IGN);
    const fl::stop_signal stop;
    ::raise(SIGHUP);
    ::_exit(stop.requested() ? 1 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("handlers are put back") {
  struct sigaction before {}, after {};
  ::sigaction(SIGINT, nullptr, &before);
  { const fl::stop_signal stop; }
  ::sigaction(SIGINT, nullptr, &after);
  CHECK(before.sa_handler == after.sa_handler);
}
