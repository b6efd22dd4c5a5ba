// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/virtual_network.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("a stopped node runs nothing until it goes on") {
  fl::virtual_reactor time;
  fl::virtual_network net(time);
  fl::virtual_node& a = net.add("a");
  std::vector<int> ran;
  a.after(1, [&] { ran.push_back(1); });
  const fl::timer_id doomed = a.after(5, [&] { ran.push_back(5); });
  a.after(6, [&] { ran.push_back(6); });
  a.after(7, [&, doomed] { ran.push_back(a.cancel(doomed) ? 70 : 7); });
  time.at(2, [&] { net.freeze("a"); });
  time.run_until(100);
  CHECK(ran == std::vector<int>{1});
  net.thaw("a");
  time.run();
  CHECK(ran == std::vector<int>{1, 5, 6, 7});
}

TEST_CASE("a timer that waits on a stopped node can still be cancelled") {
  fl::virtual_reactor time;
  fl::virtual_network net(time);
  fl::virtual_node& a = net.add("a");
  std::vector<int> ran;
  fl::timer_id second;
  a.at(3, [&] { ran.push_back(a.cancel(second)); });
  second = a.at(4, [&] { ran.push_back(4); });
  net.freeze("a");
  time.run_until(10);
  net.thaw("a");
  time.run();
  CHECK(ran == std::vector<int>{1});
}

TEST_CASE("a killed node never runs again, unless it starts anew") {
  fl::virtual_reactor time;
  fl::virtual_network net(time);
  fl::virtual_node& a = net.add("a");
  int ran = 0;
  a.after(5, [&] { ++ran; });
  net.kill("a");
  CHECK_FALSE(a.is_alive());
  a.post([&] { ++ran; });
  time.run();
  CHECK(ran == 0);
  net.revive("a");
  a.post([&] { ++ran; });
  time.run();
  CHECK(ran == 1);
}

TEST_CASE("draws come from the seed") {
  fl::virtual_reactor time;
  fl::virtual_network one(time, 1), same(time, 1), other(time, 2);
  std::vector<fl::u64> a, b, c;
  for (int i = 0; i < 100; ++i) a.push_back(one.draw(1000)), b.push_back(same.draw(1000)), c.push_back(other.draw(1000));
  CHECK(a == b);
  CHECK(a != c);
  for (const fl::u64 x : a) CHECK(x < 1000);
}

TEST_CASE("nodes have names, one each") {
  fl::virtual_reactor time;
  fl::virtual_network net(time);
  net.add("a");
  CHECK_THROWS_AS(net.add("a"), fl::error);
  CHECK_THROWS_AS(net.node("b"), fl::error);
  CHECK(net.find("b") == nullptr);
}
