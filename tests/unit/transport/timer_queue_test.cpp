// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/timer_queue.hpp>

#include <random>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("timers run by time, ties by insertion, without those cancelled") {
  fl::timer_queue q;
  std::vector<int> ran;
  auto add = [&](fl::nanoseconds when, int n) { return q.add(when, [&ran, n] { ran.push_back(n); }); };
  add(5, 1);
  add(3, 2);
  const fl::timer_id gone = add(4, 3);
  add(3, 4);
  CHECK(q.cancel(gone));
  CHECK_FALSE(q.cancel(gone));
  CHECK_FALSE(q.cancel({}));
  CHECK(q.next() == 3);
  while (!q.empty()) q.pop()();
  CHECK(ran == std::vector<int>{2, 4, 1});
  CHECK(q.next() == fl::reactor::forever);
}

TEST_CASE("a name of a timer that ran does not cancel its successor") {
  fl::timer_queue q;
  const fl::timer_id first = q.add(1, [] {});
  q.pop()();
  q.add(2, [] {});
  CHECK_FALSE(q.cancel(first));
  CHECK_FALSE(q.empty());
}

TEST_CASE("many cancelled timers leave the rest in order") {
  fl::timer_queue q;
  std::mt19937 random(1);
  std::vector<fl::nanoseconds> expected, ran;
  for (int i = 0; i < 5000; ++i) {
    const fl::nanoseconds when = fl::nanoseconds(random() % 1000);
    const fl::timer_id id = q.add(when, [&ran, when] { ran.push_back(when); });
    if (random() % 4 != 0) q.cancel(id);
    else expected.push_back(when);
  }
  std::sort(expected.begin(), expected.end());
  while (!q.empty()) q.pop()();
  CHECK(ran == expected);
}

TEST_CASE("a cancelled task that adds and cancels timers when it goes does no harm") {
  fl::timer_queue q;
  struct busy {
    fl::timer_queue* queue;
    fl::timer_id* own;
    busy(fl::timer_queue* a, fl::timer_id* b) : queue(a), own(b) {}
    busy(busy&& o) noexcept : queue(std::exchange(o.queue, nullptr)), own(o.own) {}
    ~busy() {
      if (!queue) return;
      CHECK_FALSE(queue->cancel(*own));
      for (int i = 0; i < 100; ++i) queue->add(2, [] {});
    }
  };
  fl::timer_id own;
  own = q.add(1, [b = busy(&q, &own)] { (void)b; });
  CHECK(q.cancel(own));
  int left = 0;
  for (; !q.empty(); ++left) q.pop()();
  CHECK(left == 100);
}

TEST_CASE("tasks that cancel while the queue is destroyed do no harm") {
  fl::timer_queue q;
  struct canceller {
    fl::timer_queue* queue;
    fl::timer_id id;
    canceller(fl::timer_queue* a, fl::timer_id b) : queue(a), id(b) {}
    canceller(canceller&& o) noexcept : queue(std::exchange(o.queue, nullptr)), id(o.id) {}
    ~canceller() {
      if (queue) queue->cancel(id);
    }
  };
  const fl::timer_id other = q.add(1, [] {});
  q.add(2, [c = canceller(&q, other)] { (void)c; });
}
