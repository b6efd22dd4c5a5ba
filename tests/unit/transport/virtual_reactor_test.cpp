// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/virtual_reactor.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("virtual time jumps from event to event") {
  fl::virtual_reactor r;
  std::vector<std::pair<int, fl::nanoseconds>> seen;
  r.after(2 * fl::second, [&] { seen.push_back({1, r.now()}); });
  r.after(fl::second, [&] {
    seen.push_back({2, r.now()});
    r.post([&] { seen.push_back({3, r.now()}); });
    r.at(0, [&] { seen.push_back({4, r.now()}); });
  });
  r.run();
  const std::vector<std::pair<int, fl::nanoseconds>> expected{
      {2, fl::second}, {3, fl::second}, {4, fl::second}, {1, 2 * fl::second}};
  CHECK(seen == expected);
  CHECK(r.idle());
  CHECK(r.events() == 4);
}

TEST_CASE("run_until stops at its time, stop() at once") {
  fl::virtual_reactor r;
  int ran = 0;
  for (int i = 1; i <= 10; ++i) r.at(i, [&] { ++ran; });
  r.run_until(4);
  CHECK(ran == 4);
  CHECK(r.now() == 4);
  r.at(5, [&] { r.stop(); });
  r.run();
  CHECK(ran == 5);
  r.run();
  CHECK(ran == 10);
}
