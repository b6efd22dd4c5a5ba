// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/team.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;

TEST_CASE("every member runs once, the caller as member 0") {
  for (const int size : {1, 2, 5}) {
    fl::thread_team team(size);
    CHECK(team.size() == size);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int> sum{0}, calls{0};
      std::atomic<bool> caller_is_first{false};
      const auto caller = std::this_thread::get_id();
      team.run([&](int rank, int n) {
        sum += rank;
        calls += n == size;
        if (rank == 0) caller_is_first = std::this_thread::get_id() == caller;
      });
      REQUIRE(sum == size * (size - 1) / 2);
      REQUIRE(calls == size);
      REQUIRE(caller_is_first);
    }
  }
}
TEST_CASE("parts cover everything once, in multiples of the grain, and depend on sizes alone") {
  for (const int size : {1, 2, 3})
    for (const i64 n : {0, 1, 7, 8, 9, 64, 1000, 1001})
      for (const i64 grain : {1, 8, 64}) {
        fl::thread_team team(size);
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
        std::mutex mutex;
        std::set<std::pair<i64, i64>> first, second;
        for (auto* parts : {&first, &second})
          team.split(n, grain, [&](i64 begin, i64 end) {
            for (i64 i = begin; i < end; ++i) ++seen[std::size_t(i)];
            std::lock_guard lock(mutex);
            parts->insert({begin, end});
          });
        for (auto& s : seen) REQUIRE(s == 2);
        CHECK(first == second);
        for (const auto& [begin, end] : first) {
          CHECK(begin < end);
          CHECK(begin % grain == 0);
          CHECK((end % grain == 0 || end == n));
        }
      }
}
TEST_CASE("a team of none is a team of one") {
  fl::thread_team team(0);
  CHECK(team.size() == 1);
}

// In a child, whose memory is limited to what a few threads' stacks take. The sanitizers need more than any limit leaves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
TEST_CASE("a team that the system has no room for is an error, and those that were started end") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const rlimit little{rlim_t(256) << 20, rlim_t(256) << 20};
    if (::setrlimit(RLIMIT_AS, &little) != 0) ::_exit(1);
    try {
      fl::thread_team team(1000);
    } catch (const fl::error& e) {
      ::_exit(e.code() == fl::errc::resource && std::string(e.what()).find("of 1000 cannot be started") != std::string::npos ? 0 : 2);
    }
    ::_exit(3);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif
