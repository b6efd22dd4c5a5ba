// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/outbox.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;
using fusionllm_test::message_of;
using fusionllm_test::pattern;

namespace {
std::vector<std::byte> gathered(const fl::outgoing_chunk& c) {
  std::vector<std::byte> all;
  for (std::size_t i = 0; i < c.count; ++i) all.insert(all.end(), c.parts[i].begin(), c.parts[i].end());
  return all;
}
}  // namespace

TEST_CASE("a message in parts leaves as its bytes, chunk by chunk") {
  const auto a = pattern(700, 1), b = pattern(1, 2), c = pattern(1299, 3);
  std::vector<std::byte> whole;
  for (const auto* p : {&a, &b, &c}) whole.insert(whole.end(), p->begin(), p->end());
  for (const fl::u64 cap : {1u, 3u, 699u, 700u, 701u, 702u, 1999u, 2000u, 5000u}) {
    fl::outbox box;
    fl::outgoing m;
    m.parts = {a, b, {}, c};
    m.tag = 11;
    box.put(std::move(m), 0);
    CHECK(box.queued_bytes() == 2000);
    std::vector<std::byte> seen;
    for (;;) {
      const fl::u64 claimed = box.head(cap).bytes;
      const fl::outgoing_chunk out = box.take(cap);
      const auto bytes = gathered(out);
      REQUIRE(claimed == out.bytes());
      REQUIRE(bytes.size() == out.decoded.chunk_length);
      REQUIRE(out.decoded.chunk_offset == seen.size());
      REQUIRE_NOTHROW(fl::verify_frame(out.header, bytes));
      seen.insert(seen.end(), bytes.begin(), bytes.end());
      if (!out.last) continue;
      CHECK(box.release(out) == 11);
      break;
    }
    CHECK((seen == whole));
    CHECK(box.empty());
    CHECK(box.queued_bytes() == 0);
  }
}

TEST_CASE("an empty message is one frame") {
  fl::outbox box;
  box.put(fl::outgoing{}, 0);
  const fl::outgoing_chunk c = box.take(100);
  CHECK(c.last);
  CHECK(c.count == 0);
  CHECK(c.bytes() == fl::frame_header_bytes);
}

TEST_CASE("the urgent overtakes in the middle of a message") {
  const auto data = pattern(1000);
  fl::outbox box;
  auto put = [&](fl::priority level, fl::nanoseconds deadline, fl::u64 tag) {
    auto m = message_of(data, tag, level);
    m.deadline = deadline;
    box.put(std::move(m), 0);
  };
  put(fl::priority::bulk, 0, 1);
  CHECK_FALSE(box.take(600).last);
  put(fl::priority::tensor, 9, 2);
  CHECK_FALSE(box.take(600).last);
  put(fl::priority::tensor, 5, 3);
  put(fl::priority::tensor, 5, 4);
  put(fl::priority::control, 0, 5);
  std::vector<fl::u64> order;
  while (!box.empty())
    if (const auto c = box.take(600); c.last) order.push_back(box.release(c));
  CHECK(order == std::vector<fl::u64>{5, 3, 4, 2, 1});
}

TEST_CASE("message numbers are given when a message starts, slots are used again") {
  fl::outbox box;
  for (fl::u32 i = 1; i <= 100; ++i) {
    box.put(fl::outgoing{}, 0);
    const auto c = box.take(10);
    CHECK(c.decoded.message == i);
    CHECK(c.slot == 0);
    box.release(c);
  }
}
