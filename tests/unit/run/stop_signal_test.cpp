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

TEST_CASE("handlers are put back") {
  struct sigaction before {}, after {};
  ::sigaction(SIGINT, nullptr, &before);
  { const fl::stop_signal stop; }
  ::sigaction(SIGINT, nullptr, &after);
  CHECK(before.sa_handler == after.sa_handler);
}
