// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/asio_reactor.hpp>

#include <thread>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("timers run in order and not early") {
  fl::asio_reactor r;
  std::vector<int> ran;
  const fl::nanoseconds start = r.now();
  r.after(20 * fl::millisecond, [&] { ran.push_back(2); });
  r.after(10 * fl::millisecond, [&] { ran.push_back(1); });
  const fl::timer_id gone = r.after(5 * fl::millisecond, [&] { ran.push_back(9); });
  r.after(20 * fl::millisecond, [&] { ran.push_back(3); });
  CHECK(r.cancel(gone));
  REQUIRE(r.run_while([&] { return ran.size() < 3; }, 5 * fl::second));
  CHECK(ran == std::vector<int>{1, 2, 3});
  CHECK(r.now() - start >= 20 * fl::millisecond);
}

TEST_CASE("a wait is bounded") {
  fl::asio_reactor r;
  const fl::nanoseconds start = r.now();
  CHECK_FALSE(r.run_while([] { return true; }, 20 * fl::millisecond));
  CHECK(r.now() - start >= 20 * fl::millisecond);
  CHECK(r.now() - start < 2 * fl::second);
}

TEST_CASE("other threads post and stop") {
  fl::asio_reactor r;
  constexpr int threads = 4, each = 2000;
  int ran = 0;  // only the reactor's thread touches it
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&] {
      for (int i = 0; i < each; ++i)
        r.post([&] {
          if (++ran == threads * each) r.stop();
        });
    });
  r.run();
  for (auto& w : workers) w.join();
  CHECK(ran == threads * each);
  std::thread stopper([&] { r.stop(); });
  r.run();
  stopper.join();
}

TEST_CASE("posted work keeps its order and survives an exception") {
  fl::asio_reactor r;
  std::vector<int> ran;
  for (int i = 0; i < 5; ++i)
    r.post([&, i] {
      if (i == 2) throw 2;
      ran.push_back(i);
    });
  CHECK_THROWS(r.run_while([&] { return ran.size() < 4; }, fl::second));
  CHECK(r.run_while([&] { return ran.size() < 4; }, fl::second));
  CHECK(ran == std::vector<int>{0, 1, 3, 4});
}

TEST_CASE("stop before run makes run return") {
  fl::asio_reactor r;
  r.stop();
  r.run();
  int ran = 0;
  r.post([&] { ++ran, r.stop(); });
  r.run();
  CHECK(ran == 1);
}
