// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/partition.hpp>

#include <algorithm>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;

namespace {

// Blocks of such work on devices of such speed (time = work / speed), all hops alike.
constexpr fl::partition_problem chain(const std::vector<i64>& work, const std::vector<i64>& speed, i64 busy, i64 span) {
  fl::partition_problem p;
  p.cuts = int(work.size()) + 1;
  p.devices = int(speed.size());
  for (i64 s : speed) {
    i64 sum = 0;
    p.load.push_back(0);
    for (i64 w : work) p.load.push_back(sum += w / s);
    p.share.push_back(1);
    p.kind.push_back(0);
    p.room.push_back(fl::never);
  }
  p.hop.assign(speed.size() * speed.size(), 0);
  p.hop_busy.assign(work.size() + 1, busy);
  p.hop_span.assign(work.size() + 1, span);
  p.fixed_bytes.assign(work.size() + 1, 0);
  p.slot_bytes.assign(work.size() + 1, 0);
  return p;
}

constexpr int blocks_of(const fl::partition& x, std::size_t s) { return x.begin[s + 1] - x.begin[s]; }

// A plan at compile time: 12 blocks on speeds 1, 2 and 3 are 2, 4 and 6.
constexpr bool planned_at_compile_time() {
  const auto x = fl::best_partition(chain(std::vector<i64>(12, 600), {1, 2, 3}, 1, 2), 1000);
  return x.found && x.device.size() == 3 && blocks_of(x, 0) == 2 && blocks_of(x, 1) == 4 && blocks_of(x, 2) == 6 && x.bottleneck == 1200;
}
static_assert(planned_at_compile_time());

struct generator {
  fl::u64 state;
  i64 below(i64 n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return i64((state >> 33) % fl::u64(n));
  }
};

// Every way to give consecutive blocks to a subset of the devices in their order.
void try_all(const fl::partition_problem& p, int rounds, int device, int cut, int last, i64 bottleneck, i64 span, i64& best) {
  const int end = p.cuts - 1;
  if (cut == end) {
    fl::partition x;
    x.bottleneck = bottleneck;
    x.span = span;
    best = (std::min)(best, fl::pipeline_time(x, rounds));
    return;
  }
  for (int d = device; d < p.devices; ++d)
    for (int to = cut + 1; to <= end; ++to) {
      const i64 load = p.load[std::size_t(d * p.cuts + to)] - p.load[std::size_t(d * p.cuts + cut)];
      if (p.fixed_bytes[std::size_t(to)] - p.fixed_bytes[std::size_t(cut)] > p.room[std::size_t(d)]) break;
      i64 b = (std::max)(bottleneck, (load + p.share[std::size_t(d)] - 1) / p.share[std::size_t(d)]), s = span + load;
      if (last >= 0) {
        const std::size_t hop = std::size_t(p.hop[std::size_t(last * p.devices + d)] * p.cuts + cut);
        if (p.hop_busy[hop] >= fl::never) continue;
        const i64 x = p.share[std::size_t(last)], y = p.share[std::size_t(d)];
        b = (std::max)(b, p.hop_busy[hop] / (std::max)(x, y));
        s += p.hop_span[hop];
      }
      try_all(p, rounds, d + 1, to, d, b, s, best);
    }
}

}  // namespace

TEST_CASE("a slow link is avoided, a cheap cut taken") {
  // Cut 2 is cheap. All work fits one device in time 60, the hop costs 50 except there.
  auto p = chain({10, 10, 10, 10, 10, 10}, {1, 1}, 50, 50);
  p.hop_busy[2] = 5;
  p.hop_span[2] = 5;
  auto x = fl::best_partition(p, 100);
  REQUIRE(x.found);
  CHECK(x.begin == std::vector<int>{0, 2, 6});
  CHECK(x.bottleneck == 40);
  x = fl::best_partition(p, 1);  // a single micro-batch gains nothing by a hop
  CHECK(x.device.size() == 1);
}

TEST_CASE("devices that only slow it down are left out, unless all are asked for") {
  auto p = chain(std::vector<i64>(8, 1000), {100, 1, 100}, 1, 1);
  auto x = fl::best_partition(p, 10);
  CHECK(x.device == std::vector<int>{0, 2});
  p.all = true;
  x = fl::best_partition(p, 10);
  CHECK(x.device == std::vector<int>{0, 1, 2});
  CHECK(blocks_of(x, 1) == 1);
}

TEST_CASE("memory bounds what a device takes, and may leave no way") {
  auto p = chain(std::vector<i64>(6, 100), {1, 1, 1}, 1, 1);
  for (int c = 0; c < p.cuts; ++c) p.fixed_bytes[std::size_t(c)] = 10 * c;
  p.room = {10, 40, 20};
  auto x = fl::best_partition(p, 50);
  REQUIRE(x.found);
  for (std::size_t s = 0; s < x.device.size(); ++s) CHECK(10 * blocks_of(x, s) <= p.room[std::size_t(x.device[s])]);
  p.room = {10, 20, 20};
  CHECK_FALSE(fl::best_partition(p, 50).found);
  p.room = {60, 0, 0};
  x = fl::best_partition(p, 50);
  CHECK(x.device == std::vector<int>{0});
  for (int c = 0; c < p.cuts; ++c) p.slot_bytes[std::size_t(c)] = c;
  p.slots = 2;
  CHECK_FALSE(fl::best_partition(p, 50).found);
}

TEST_CASE("a closed hop is no hop, except where nothing has to cross") {
  auto p = chain(std::vector<i64>(4, 100), {1, 1}, fl::never, fl::never);
  CHECK(fl::best_partition(p, 50).device.size() == 1);
  p.hop_busy[3] = p.hop_span[3] = 0;
  const auto x = fl::best_partition(p, 50);
  CHECK(x.begin == std::vector<int>{0, 3, 4});
  p.room = {10, 10};
  p.fixed_bytes = {0, 5, 10, 15, 20};
  CHECK_FALSE(fl::best_partition(p, 50).found);
}

TEST_CASE("a fold gives the tail to the first device") {
  auto p = chain({10, 30, 30, 30, 10}, {1, 1, 1}, 1, 1);
  p.tail = 4;
  const auto x = fl::best_partition(p, 100);
  REQUIRE(x.found);
  CHECK(x.device.front() == 0);
  CHECK(x.begin.back() == 4);
  CHECK(x.begin.front() == 0);
  CHECK(x.bottleneck == 50);  // 10 + 30 + 10 on the first, or 60 on another
}

TEST_CASE("several devices on demand, or replicas of one stage") {
  auto p = chain({10, 10, 10}, {1, 1}, 500, 500);
  CHECK(fl::best_partition(p, 4).device.size() == 1);
  p.several = true;
  CHECK(fl::best_partition(p, 4).device.size() == 2);
  p.share = {2, 1};
  p.kind = {0, 1};
  CHECK(fl::best_partition(p, 4).device == std::vector<int>{0});
}

TEST_CASE("replicas share micro-batches") {
  auto p = chain(std::vector<i64>(8, 100), {1, 1}, 1, 1);
  p.share = {3, 1};
  p.kind = {0, 1};
  const auto x = fl::best_partition(p, 1000);
  REQUIRE(x.device.size() == 2);
  CHECK(blocks_of(x, 0) == 6);
  CHECK(x.bottleneck == 200);
}

TEST_CASE("one block, one device, no block") {
  CHECK(fl::best_partition(chain({7}, {1, 1, 1}, 1, 1), 4).device.size() == 1);
  CHECK(fl::best_partition(chain({0, 0, 0}, {1, 1}, 1, 1), 4).found);
  CHECK_FALSE(fl::best_partition(chain({}, {1}, 1, 1), 4).found);
}

TEST_CASE("no other way is much shorter: random chains against all ways") {
  generator r{7};
  for (int n = 0; n < 200; ++n) {
    const int blocks = 1 + int(r.below(7)), devices = 1 + int(r.below(4)), rounds = 1 + int(r.below(20));
    std::vector<i64> work, speed;
    for (int i = 0; i < blocks; ++i) work.push_back(1000 * (1 + r.below(9)));
    for (int i = 0; i < devices; ++i) speed.push_back(1 + r.below(4));
    auto p = chain(work, speed, 0, 0);
    p.kind.clear();
    p.hop.assign(std::size_t(devices * devices), 0);
    p.hop_busy.clear();
    p.hop_span.clear();
    for (int d = 0; d < devices; ++d) {
      p.kind.push_back(d);
      p.share[std::size_t(d)] = 1 + int(r.below(2));
      p.room[std::size_t(d)] = 2 + r.below(6);
    }
    for (int h = 0; h < devices * devices; ++h) {
      p.hop[std::size_t(h)] = h;
      for (int c = 0; c < p.cuts; ++c) {
        const bool closed = r.below(9) == 0;
        const i64 busy = closed ? fl::never : r.below(4000);
        p.hop_busy.push_back(busy);
        p.hop_span.push_back(closed ? fl::never : 2 * busy + r.below(500));
      }
    }
    for (int c = 0; c < p.cuts; ++c) p.fixed_bytes[std::size_t(c)] = c;
    i64 best = fl::never;
    try_all(p, rounds, 0, 0, -1, 0, 0, best);
    const auto x = fl::best_partition(p, rounds);
    CHECK(x.found == (best < fl::never));
    if (!x.found) continue;
    CHECK(fl::pipeline_time(x, rounds) >= best);
    CHECK(double(fl::pipeline_time(x, rounds)) <= 1.1 * double(best));
  }
}
