// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/stall_watch.hpp>
#include <fusionllm/transport/virtual_reactor.hpp>

#include "catch.hpp"

namespace fl = fusionllm;
using direction = fl::stall_watch::direction;

TEST_CASE("what moves is not stalled, what stands still is, by its direction") {
  fl::virtual_reactor r;
  fl::stall_watch w(r, 100);
  std::vector<std::pair<direction, fl::nanoseconds>> seen;
  const auto stalled = [&](direction d) { seen.push_back({d, r.now()}); };
  w.update(true, false, stalled);
  for (int i = 1; i <= 10; ++i) r.at(i * 90, [&] { w.moved(direction::out, r.now()); });
  r.run_until(950);
  CHECK(seen.empty());
  w.moved(direction::in, r.now());
  w.update(true, true, stalled);
  r.run_until(1010);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] == std::pair{direction::out, fl::nanoseconds(1000)});
  w.update(false, true, stalled);
  w.update(false, false, stalled);
  r.run();
  CHECK(seen.size() == 1);
  CHECK(r.idle());
  w.update(false, true, stalled);
  r.run();
  REQUIRE(seen.size() == 2);
  CHECK(seen[1].first == direction::in);
}
