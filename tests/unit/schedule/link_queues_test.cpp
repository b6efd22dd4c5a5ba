// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/link_queues.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fl::message_kind;

namespace {

// One byte a nanosecond, 100 ns late.
constexpr fl::path line{100, 1'000'000'000};

fl::message_record tensor(int micro_batch, fl::u64 bytes, int from = 0, int to = 1) {
  return {message_kind::activation, from, to, 0, micro_batch, bytes, bytes};
}

}  // namespace

TEST_CASE("a message has its link at once, the next one waits") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  fl::link_queues q(costs);
  const int a = q.add(tensor(0, 50)), b = q.add(tensor(1, 30));
  const auto first = q.queue(a, 10);
  REQUIRE(first);
  CHECK(first->end == 60);
  CHECK_FALSE(q.queue(b, 20));
  CHECK(q.finish(a, first->number, 60));
  CHECK(q.message(a).arrived == 160);
  const auto second = q.next(a, 60);
  REQUIRE(second);
  CHECK(second->message == b);
  CHECK(second->end == 90);
  CHECK(q.finish(b, second->number, 90));
  CHECK(q.message(b).start == 60);
  CHECK_FALSE(q.next(b, 90));
}

TEST_CASE("the earlier micro-batch goes between, and nothing of the other is lost") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  fl::link_queues q(costs);
  const int late = q.add(tensor(5, 100)), early = q.add(tensor(2, 30)), note = q.add({message_kind::answer, 0, 1, -1, -1, 5, 5});
  const auto a = q.queue(late, 0);
  const auto b = q.queue(early, 40);
  REQUIRE(b);
  CHECK(b->end == 70);
  const auto c = q.queue(note, 50);
  REQUIRE(c);
  CHECK(c->end == 55);
  CHECK(q.finish(note, c->number, 55));
  const auto d = q.next(note, 55);
  REQUIRE(d);
  CHECK(d->message == early);
  CHECK(d->end == 75);
  CHECK_FALSE(q.finish(early, b->number, 70));  // the turn that was interrupted
  CHECK(q.finish(early, d->number, 75));
  const auto e = q.next(early, 75);
  REQUIRE(e);
  CHECK(e->message == late);
  CHECK(e->end == 135);
  CHECK_FALSE(q.finish(late, a->number, 100));
  CHECK(q.finish(late, e->number, 135));
  CHECK(q.message(late).start == 0);
  CHECK(q.message(late).busy == 100);
}

TEST_CASE("of equal ones the first goes first, parameters after tensors, directions apart") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  fl::link_queues q(costs);
  const int running = q.add(tensor(0, 10)), value = q.add({message_kind::value, 0, 1, 0, -1, 8, 8});
  const int x = q.add(tensor(3, 10)), y = q.add(tensor(3, 10)), back = q.add(tensor(9, 10, 1, 0));
  auto t = q.queue(running, 0);
  for (int i : {value, x, y}) CHECK_FALSE(q.queue(i, 1));
  CHECK(q.queue(back, 1));
  std::vector<int> order;
  for (int last = running; t;) {
    order.push_back(t->message);
    CHECK(q.finish(t->message, t->number, t->end));
    last = t->message;
    t = q.next(last, t->end);
  }
  CHECK(order == std::vector<int>{running, x, y, value});
}

TEST_CASE("messages over a site's line wait for it and are not interrupted") {
  fl::cluster c = fl::uniform_cluster(3, {"", 0, 1'000'000'000, plenty, 0, 0}, line);
  c.sites = {{"a", 1'000'000'000, 0}, {"b", 0, 0}};
  c.peers[2].site = 1;
  fl::cost_model costs(c);
  costs.set_message_overhead(0);
  fl::link_queues q(costs);
  const int a = q.add(tensor(5, 50, 0, 2)), b = q.add(tensor(1, 20, 1, 2)), inside = q.add(tensor(1, 20, 0, 1)), urgent = q.add(tensor(0, 10, 0, 2));
  CHECK(q.queue(a, 0)->end == 50);
  CHECK(q.queue(b, 10)->end == 70);
  CHECK(q.queue(inside, 10)->end == 30);
  CHECK_FALSE(q.queue(urgent, 20));
}
