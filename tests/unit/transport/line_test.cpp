// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/line.hpp>
#include <fusionllm/transport/virtual_reactor.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {
/// Wants the line for chunks of one size.
struct user final : fl::line_user {
  fl::line& on;
  fl::priority level = fl::priority::tensor;
  fl::u64 bytes = 1000;
  int left = 0;
  fl::nanoseconds since = 0;
  std::vector<std::pair<fl::nanoseconds, fl::nanoseconds>> got;

  explicit user(fl::line& l) : on(l) {}
  fl::chunk_key next_chunk() override { return {level, 0, since, left > 0 ? bytes : 0}; }
  void grant(fl::nanoseconds start, fl::nanoseconds end) override {
    got.push_back({start, end});
    if (--left > 0) on.want(*this);
  }
};
constexpr fl::u64 mega = 1'000'000;
}  // namespace

TEST_CASE("frames occupy a line one after another") {
  fl::virtual_reactor r;
  fl::line l(r, 8 * mega);  // 1 us a byte
  user u(l);
  u.left = 3;
  l.want(u);
  r.run();
  const std::vector<std::pair<fl::nanoseconds, fl::nanoseconds>> expected{
      {0, fl::millisecond}, {fl::millisecond, 2 * fl::millisecond}, {2 * fl::millisecond, 3 * fl::millisecond}};
  CHECK(u.got == expected);
  CHECK(l.busy() == 3 * fl::millisecond);
  CHECK(l.bytes() == 3000);
}

TEST_CASE("two users take turns, an urgent one goes first") {
  fl::virtual_reactor r;
  fl::line l(r, 8 * mega);
  user a(l), b(l), urgent(l);
  urgent.level = fl::priority::control;
  a.left = b.left = 4;
  l.want(a);
  l.want(b);
  r.at(fl::millisecond + 1, [&] {
    urgent.left = 1;
    urgent.since = r.now();
    l.want(urgent);
  });
  r.run();
  CHECK(a.got.size() == 4);
  CHECK(b.got.size() == 4);
  CHECK(urgent.got.front().first == 2 * fl::millisecond);
  CHECK(b.got.back().second == 9 * fl::millisecond);
  CHECK(a.got.back().second >= 7 * fl::millisecond);
}

TEST_CASE("a timer that fires late does not shift the schedule") {
  struct late final : fl::reactor {  // a virtual reactor whose timers come 0.3 ms late
    fl::virtual_reactor inner;
    fl::nanoseconds now() const override { return inner.now(); }
    fl::timer_id at(fl::nanoseconds when, task t) override { return inner.at(when + 300 * fl::microsecond, std::move(t)); }
    bool cancel(fl::timer_id id) override { return inner.cancel(id); }
    void post(task t) override { inner.post(std::move(t)); }
    bool run_one(fl::nanoseconds d) override { return inner.run_one(d); }
    void run() override { inner.run(); }
    void stop() override { inner.stop(); }
  } r;
  fl::line l(r, 8 * mega);
  user u(l);
  u.bytes = 100;  // 0.1 ms, less than the delay: the line catches up
  u.left = 1000;
  l.want(u);
  r.run();
  CHECK(u.got.back().second == 1000 * 100 * fl::microsecond);
}

TEST_CASE("an idle line starts when it is wanted; who leaves is forgotten") {
  fl::virtual_reactor r;
  fl::line l(r, 8 * mega);
  user u(l), gone(l);
  r.at(fl::second, [&] {
    u.left = 2;
    gone.left = 1;
    u.since = gone.since = r.now();
    l.want(u);
    l.want(gone);
    l.forget(gone);
  });
  r.run();
  CHECK(u.got.front().first == fl::second);
  CHECK(u.got.back().second == fl::second + 2 * fl::millisecond);
  CHECK(gone.got.empty());
}

TEST_CASE("a line without a limit takes no time") {
  fl::virtual_reactor r;
  fl::line l(r, 0);
  user u(l);
  u.left = 5;
  l.want(u);
  CHECK(u.got.size() == 5);
  CHECK(u.got.back().second == 0);
}

TEST_CASE("durations are exact and do not overflow") {
  fl::virtual_reactor r;
  CHECK(fl::line(r, 8 * mega).duration(1) == 1000);
  CHECK(fl::line(r, 1'000 * mega).duration(1'500'000) == 12 * fl::millisecond);
  CHECK(fl::line(r, 3).duration(3) == 8 * fl::second);
  CHECK(fl::line(r, 400'000 * mega).duration(fl::u64(1) << 40) > 21 * fl::second);
  static_assert(fl::paced_chunk(8'000'000, 20 * fl::millisecond, 256 << 10) == 20'000);
  static_assert(fl::paced_chunk(1'000'000'000, 20 * fl::millisecond, 256 << 10) == 65536);
  static_assert(fl::paced_chunk(1'000, 20 * fl::millisecond, 256 << 10) == 1024);
  static_assert(fl::paced_chunk(0, 20 * fl::millisecond, 256 << 10) == 256 << 10);
}
