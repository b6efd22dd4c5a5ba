// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/device_queue.hpp>

#include <atomic>
#include <string>
#include <vector>

#include "catch.hpp"
#include <fusionllm/core/error.hpp>
#include <fusionllm/transport/asio_reactor.hpp>
#include <fusionllm/transport/virtual_reactor.hpp>

namespace fl = fusionllm;
using fl::nanoseconds;

namespace {

std::string text_of(const std::exception_ptr& p) {
  if (!p) return "";
  try {
    std::rethrow_exception(p);
  } catch (const std::exception& e) {
    return e.what();
  }
}

// What holds for both kinds of queue.
void check_queue(fl::reactor& loop, fl::device_queue& q) {
  std::vector<std::string> seen;
  int left = 30;
  struct chain {
    fl::device_queue& q;
    std::vector<std::string>& seen;
    int& left;
    void next() {
      if (left-- == 0) return;
      q.submit([this] { seen.push_back("work " + std::to_string(left)); }, 0, [this](const fl::completion& c) {
        CHECK(!c.failure);
        CHECK(c.measured >= 0);
        seen.push_back("done " + std::to_string(left));
        next();
      });
    }
  } run{q, seen, left};
  run.next();
  REQUIRE(loop.run_while([&] { return left >= 0; }, 10 * fl::second));
  REQUIRE(seen.size() == 60);
  for (int i = 0; i < 30; ++i) {
    CHECK(seen[std::size_t(2 * i)] == "work " + std::to_string(29 - i));
    CHECK(seen[std::size_t(2 * i + 1)] == "done " + std::to_string(29 - i));
  }

  bool done = false;
  q.submit([] { fl::fail(fl::errc::numeric, "a NaN in the work"); }, 0, [&](const fl::completion& c) {
    CHECK(text_of(c.failure) == "a NaN in the work");
    done = true;
  });
  REQUIRE(loop.run_while([&] { return !done; }, 10 * fl::second));
  done = false;
  q.submit([] {}, 0, [&](const fl::completion& c) {
    CHECK(!c.failure);
    done = true;
  });
  REQUIRE(loop.run_while([&] { return !done; }, 10 * fl::second));

  // Emulation: the completion waits for the modelled time, and says what it was.
  const nanoseconds hold = 30 * fl::millisecond, begin = loop.now();
  done = false;
  q.submit([] {}, hold, [&](const fl::completion& c) {
    CHECK(loop.now() - begin >= hold);
    CHECK(c.elapsed >= hold);
    CHECK(c.measured < hold);
    done = true;
  });
  REQUIRE(loop.run_while([&] { return !done; }, 10 * fl::second));

  // After drain() nothing is heard of what was under way, held back or not; what comes later is.
  for (nanoseconds modelled : {nanoseconds(0), 20 * fl::millisecond}) {
    bool lost = false;
    q.submit([] {}, modelled, [&](const fl::completion&) { lost = true; });
    q.drain();
    done = false;
    q.submit([] {}, 0, [&](const fl::completion&) { done = true; });
    REQUIRE(loop.run_while([&] { return !done; }, 10 * fl::second));
    loop.run_until(loop.now() + 40 * fl::millisecond);
    CHECK(!lost);
  }
}

}  // namespace

TEST_CASE("inline queue: order, failures, holds, drain") {
  fl::virtual_reactor loop;
  fl::inline_queue q(loop);
  check_queue(loop, q);
}

TEST_CASE("worker queue: order, failures, holds, drain") {
  fl::asio_reactor loop;
  fl::worker_queue q(loop);
  check_queue(loop, q);
}

TEST_CASE("worker queue: the reactor goes on while the work runs, on another thread") {
  fl::asio_reactor loop;
  fl::worker_queue q(loop);
  std::atomic<bool> release{false};
  bool done = false, beat = false;
  std::thread::id worker;
  q.submit([&] {
    worker = std::this_thread::get_id();
    while (!release) std::this_thread::yield();
  }, 0, [&](const fl::completion&) { done = true; });
  loop.after(fl::millisecond, [&] { beat = true; });
  REQUIRE(loop.run_while([&] { return !beat; }, 10 * fl::second));
  CHECK(!done);
  release = true;
  REQUIRE(loop.run_while([&] { return !done; }, 10 * fl::second));
  CHECK(worker != std::this_thread::get_id());
}

TEST_CASE("worker queue: drain and destruction wait for the work, whose owner may then go") {
  for (int i = 0; i < 20; ++i) {
    fl::asio_reactor loop;
    auto memory = std::make_unique<std::vector<int>>(1000, 1);
    int sum = 0;
    {
      fl::worker_queue q(loop);
      q.submit([&] {
        for (int k = 0; k < 100; ++k)
          for (int x : *memory) sum += x;
      }, 0, [&](const fl::completion&) { memory->clear(); });
      if (i % 2) q.drain();
    }
    memory.reset();
    CHECK(sum == 100000);
    loop.run_until(loop.now());
  }
}
