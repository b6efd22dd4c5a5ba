// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/frame.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;

namespace {
fl::frame_header sample(fl::u32 length) {
  fl::frame_header h;
  h.kind = fl::frame_kind::cotangent;
  h.codec = 0x0102;
  h.epoch = 3;
  h.micro_batch = 4;
  h.step = 0x1122334455667788;
  h.edge = 6;
  h.source = 7;
  h.destination = 8;
  h.message = 9;
  h.chunk_length = length;
  h.chunk_offset = 10;
  h.total_length = 10 + length;
  h.raw_length = 5000;
  return h;
}
std::string problem(const fl::encoded_header& h, fl::errc code, fl::frame_limits limits = {}) {
  try {
    fl::decode_frame(h, limits);
  } catch (const fl::error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "no error";
}
void poke(fl::encoded_header& h, std::size_t at, fl::u64 value) { fl::store_little(h.data() + at, value); }
}  // namespace

TEST_CASE("a header comes back as it was") {
  const auto data = fusionllm_test::pattern(33);
  const fl::const_byte_span chunk(data);
  const fl::encoded_header e = fl::encode_frame(sample(33), {&chunk, 1});
  CHECK(std::to_integer<char>(e[0]) == 'F');
  CHECK(std::to_integer<char>(e[3]) == 'M');
  CHECK(std::to_integer<int>(e[4]) == int(fl::wire_version));
  const fl::frame_header h = fl::decode_frame(e, {});
  CHECK(h.kind == fl::frame_kind::cotangent);
  CHECK(h.codec == 0x0102);
  CHECK(h.epoch == 3);
  CHECK(h.micro_batch == 4);
  CHECK(h.step == 0x1122334455667788);
  CHECK(h.edge == 6);
  CHECK(h.source == 7);
  CHECK(h.destination == 8);
  CHECK(h.message == 9);
  CHECK(h.chunk_length == 33);
  CHECK(h.chunk_offset == 10);
  CHECK(h.total_length == 43);
  CHECK(h.raw_length == 5000);
  CHECK_NOTHROW(fl::verify_frame(e, chunk));
}

TEST_CASE("one flipped bit anywhere is found") {
  const auto data = fusionllm_test::pattern(33);
  const fl::const_byte_span chunk(data);
  const fl::encoded_header good = fl::encode_frame(sample(33), {&chunk, 1});
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    fl::encoded_header bad = good;
    bad[bit / 8] ^= std::byte(1 << (bit % 8));
    CHECK_THROWS_AS(fl::verify_frame(bad, chunk), fl::error);
  }
  for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
    auto bad = data;
    bad[bit / 8] ^= std::byte(1 << (bit % 8));
    CHECK_THROWS_AS(fl::verify_frame(good, bad), fl::error);
  }
}

TEST_CASE("absurd lengths are errors that name the value and the cap") {
  const fl::encoded_header good = fl::encode_frame(sample(0x1000), {});
  fl::encoded_header h = good;
  poke(h, 56, fl::u64(1) << 63);
  CHECK(contains(problem(h, fl::errc::protocol), "a message of 9223372036854775808 bytes, the cap is 4294967296"));
  const fl::frame_limits small{.frame_cap = 64 << 10, .message_cap = 1 << 20};
  for (const fl::u32 length : {(64u << 10) + 1, 1u << 20, 0xFFFFFFFFu}) {
    fl::frame_header over = sample(length);
    CHECK(contains(problem(fl::encode_frame(over, {}), fl::errc::protocol, small),
                   "a chunk of " + std::to_string(length) + " bytes, the cap is 65536"));
  }
  for (const fl::u32 length : {1u, (64u << 10) - 1, 64u << 10})
    CHECK(problem(fl::encode_frame(sample(length), {}), fl::errc::protocol, small) == "no error");
  h = good;
  poke(h, 48, ~fl::u64(0) - 5);  // offset + length would overflow
  CHECK(contains(problem(h, fl::errc::protocol), "frame claims bytes 18446744073709551610"));
  h = fl::encode_frame(sample(0), {});
  CHECK(contains(problem(h, fl::errc::protocol), "an empty chunk"));
}

TEST_CASE("other protocols and versions are told apart") {
  fl::encoded_header http{};
  const auto get = fl::bytes_of("GET / HTTP/1.1\r\n");
  std::copy(get.begin(), get.end(), http.begin());
  CHECK(contains(problem(http, fl::errc::protocol), "magic is 0x20544547"));
  const fl::encoded_header next = fl::encode_frame(sample(0), {}, fl::wire_version + 1);
  const std::string text = problem(next, fl::errc::handshake);
  CHECK(contains(text, "wire version " + std::to_string(fl::wire_version + 1) + " there"));
  CHECK(contains(text, std::to_string(fl::wire_version) + " (library"));
}

TEST_CASE("bytes on the wire count a header a chunk") {
  static_assert(fl::wire_bytes(0, 1000) == 80);
  static_assert(fl::wire_bytes(1000, 1000) == 1080);
  static_assert(fl::wire_bytes(1001, 1000) == 1161);
}
