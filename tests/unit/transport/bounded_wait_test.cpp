// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/bounded_wait.hpp>
#include <fusionllm/transport/virtual_network.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("a wait ends at its time, or when it is cancelled, or set again") {
  fl::virtual_reactor r;
  int expired = 0;
  fl::bounded_wait w(r);
  w.until(10, [&] { ++expired; });
  w.until(20, [&] { expired += 10; });
  r.run_until(19);
  CHECK(expired == 0);
  CHECK(bool(w));
  r.run_until(20);
  CHECK(expired == 10);
  CHECK_FALSE(bool(w));
  w.until(30, [&] { ++expired; });
  w.cancel();
  {
    fl::bounded_wait gone(r);
    gone.until(40, [&] { ++expired; });
  }
  r.run();
  CHECK(expired == 10);
}

TEST_CASE("who was stopped looks at what came before giving up") {
  fl::virtual_reactor time;
  fl::virtual_network net(time);
  fl::virtual_node& n = net.add("n");
  fl::bounded_wait w(n);
  bool came = false, expired = false;
  w.until(fl::second, [&] { expired = true; });
  net.freeze("n");
  time.run_until(5 * fl::second);
  SECTION("something came") {
    n.post([&] { came = true, w.cancel(); });
    net.thaw("n");
    time.run_until(6 * fl::second);
    CHECK(came);
    CHECK_FALSE(expired);
  }
  SECTION("nothing came") {
    net.thaw("n");
    time.run_until(6 * fl::second);
    CHECK(expired);
  }
}
