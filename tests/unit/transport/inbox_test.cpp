// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/inbox.hpp>
#include <fusionllm/transport/outbox.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;
using fusionllm_test::pattern;

namespace {
fl::byte_span nowhere(const fl::frame_header&) { return {}; }

fl::frame_header chunk_of(fl::u32 message, fl::u64 total, fl::u64 offset, fl::u32 length) {
  fl::frame_header h;
  h.message = message;
  h.total_length = total;
  h.chunk_offset = offset;
  h.chunk_length = length;
  return h;
}
template <class F>
std::string problem(F&& f) {
  try {
    f();
  } catch (const fl::error& e) {
    return e.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("interleaved messages come together exactly, in given memory or in a buffer") {
  const auto a = pattern(5000, 1), b = pattern(3000, 2);
  fl::outbox out;
  out.put(fusionllm_test::message_of(a, 1, fl::priority::bulk), 0);
  std::vector<std::byte> place_a(5000), seen_b;
  fl::inbox in({});
  bool a_done = false;
  int step = 0;
  while (!out.empty()) {
    if (++step == 3) out.put(fusionllm_test::message_of(b, 2, fl::priority::control), 0);
    const auto c = out.take(777);
    const fl::byte_span to = in.open(c.decoded, [&](const fl::frame_header& h) {
      return h.total_length == 5000 ? fl::byte_span(place_a) : fl::byte_span{};
    });
    REQUIRE(to.size() == c.decoded.chunk_length);
    std::size_t at = 0;
    for (std::size_t i = 0; i < c.count; ++i) {
      std::copy(c.parts[i].begin(), c.parts[i].end(), to.begin() + std::ptrdiff_t(at));
      at += c.parts[i].size();
    }
    if (!in.commit(c.decoded)) continue;
    const fl::byte_span whole = in.payload(c.decoded);
    if (whole.size() == 5000) a_done = whole.data() == place_a.data();
    else seen_b.assign(whole.begin(), whole.end());
    in.close(c.decoded);
  }
  CHECK(a_done);
  CHECK((place_a == a));
  CHECK((seen_b == b));
  CHECK(in.empty());
}

TEST_CASE("chunks that fit no message are errors") {
  fl::inbox in({.buffer_cap = 1000, .open_messages = 2});
  CHECK(contains(problem([&] { in.open(chunk_of(1, 100, 50, 50), nowhere); }), "which never began"));
  in.open(chunk_of(1, 100, 0, 50), nowhere);
  in.commit(chunk_of(1, 100, 0, 50));
  CHECK(contains(problem([&] { in.open(chunk_of(1, 101, 50, 50), nowhere); }), "began with 100 bytes and goes on with 101"));
  CHECK(contains(problem([&] { in.open(chunk_of(1, 100, 40, 50), nowhere); }), "at 40, expected at 50"));
  CHECK(contains(problem([&] { in.open(chunk_of(2, 901, 0, 1), nowhere); }), "the cap is 1000"));
  in.open(chunk_of(2, 900, 0, 1), nowhere);
  CHECK(contains(problem([&] { in.open(chunk_of(3, 1, 0, 1), nowhere); }), "the limit is 2"));
}

TEST_CASE("memory of another size is the receiver's defect") {
  fl::inbox in({});
  std::vector<std::byte> memory(99);
  CHECK(contains(problem([&] { in.open(chunk_of(1, 100, 0, 50), [&](const auto&) { return fl::byte_span(memory); }); }),
                 "place() gave 99 bytes for a message of 100"));
}

TEST_CASE("closing gives the buffered bytes back") {
  fl::inbox in({.buffer_cap = 1000, .open_messages = 2});
  for (fl::u32 i = 1; i < 50; ++i) {
    in.open(chunk_of(i, 1000, 0, 1000), nowhere);
    REQUIRE(in.commit(chunk_of(i, 1000, 0, 1000)));
    in.close(chunk_of(i, 1000, 0, 1000));
  }
  CHECK(in.empty());
}
