// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/reactor.hpp>
#include <fusionllm/transport/virtual_reactor.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("run_while ends with its condition or its timeout") {
  fl::virtual_reactor r;
  bool done = false;
  r.after(3, [&] { done = true; });
  CHECK(r.run_while([&] { return !done; }, 10));
  CHECK(r.now() == 3);
  done = false;
  r.after(20, [&] { done = true; });
  CHECK_FALSE(r.run_while([&] { return !done; }, 10));
  CHECK(r.now() == 13);
}

TEST_CASE("a task that throws leaves the reactor usable") {
  fl::virtual_reactor r;
  int ran = 0;
  r.post([] { throw 1; });
  r.post([&] { ++ran; });
  CHECK_THROWS(r.run());
  r.run();
  CHECK(ran == 1);
}
