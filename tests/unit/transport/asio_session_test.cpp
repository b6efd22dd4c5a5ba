// SPDX-License-Identifier: Apache-2.0
// What a listener does with bytes that no peer of ours would send.
#include <fusionllm/transport/asio_session.hpp>

#include <random>

#include "catch.hpp"
#include "sockets.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;
using fusionllm_test::named;
using fusionllm_test::raw_socket;
using fusionllm_test::two_sockets;

namespace {
/// A frame as bytes.
std::vector<std::byte> frame(fl::frame_header h, fl::const_byte_span payload, unsigned version = fl::wire_version) {
  h.chunk_length = fl::u32(payload.size());
  if (h.total_length == 0) h.total_length = payload.size();
  const fl::encoded_header e = fl::encode_frame(h, {&payload, 1}, version);
  std::vector<std::byte> all(e.begin(), e.end());
  all.insert(all.end(), payload.begin(), payload.end());
  return all;
}
std::vector<std::byte> hello_frame(unsigned version = fl::wire_version) {
  fl::hello h = named("raw").self;
  h.frame_cap = 64 << 10;
  return frame({.kind = fl::frame_kind::hello, .message = 1}, fl::encode(h), version);
}
void still_serves(two_sockets& s) {
  s.connect();
  CHECK(s.at_a.opened == 1);
  CHECK(s.at_b.opened >= 1);
}
}  // namespace

TEST_CASE("strangers are turned away within a second, and the listener serves on") {
  two_sockets s;
  raw_socket raw(s.loop, s.where);
  const fl::nanoseconds start = s.loop.now();
  SECTION("an HTTP GET") {
    raw.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(s.at_b.rejected[0].code() == fl::errc::protocol);
    CHECK(contains(s.at_b.rejected[0].what(), "not fusionllm traffic"));
  }
  SECTION("random bytes") {
    std::mt19937 random(1);
    std::string noise(100'000, ' ');
    for (char& c : noise) c = char(random());
    raw.say(noise);
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(s.at_b.rejected[0].code() == fl::errc::protocol);
  }
  SECTION("a few bytes, then nothing") {
    raw.say("FLL");
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(s.at_b.rejected[0].code() == fl::errc::timeout);
    CHECK(contains(s.at_b.rejected[0].what(), "waited 900 ms for 127.0.0.1:"));
  }
  SECTION("silence") {
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(contains(s.at_b.rejected[0].what(), "it sent no hello"));
  }
  SECTION("one byte at a time") {
    const auto bytes = hello_frame();
    for (int i = 0; i < 20 && !raw.closed; ++i) {
      raw.say({&bytes[std::size_t(i)], 1});
      raw.listen(100 * fl::millisecond);
    }
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(s.at_b.rejected[0].code() == fl::errc::timeout);
  }
  SECTION("a hello, then silence") {
    raw.say(hello_frame());
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(contains(s.at_b.rejected[0].what(), "did not confirm the welcome"));
  }
  SECTION("the next wire version") {
    const std::string versions = "wire version " + std::to_string(fl::wire_version + 1) + " there, " + std::to_string(fl::wire_version);
    raw.say(hello_frame(fl::wire_version + 1));
    const std::string answer = raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(s.at_b.rejected[0].code() == fl::errc::handshake);
    CHECK(contains(s.at_b.rejected[0].what(), versions));
    REQUIRE(answer.size() > fl::frame_header_bytes);  // a frame of ours, so that the other side sees our version
    CHECK(answer.substr(0, 4) == "FLLM");
    CHECK(contains(answer, versions));
  }
  SECTION("a tensor before the hello") {
    raw.say(frame({.kind = fl::frame_kind::activation, .message = 1}, fl::bytes_of("x")));
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(contains(s.at_b.rejected[0].what(), "before the handshake was over"));
  }
  SECTION("2^63 bytes") {
    raw.say(frame({.kind = fl::frame_kind::hello, .message = 1, .total_length = fl::u64(1) << 63}, fl::bytes_of("x")));
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.rejected.empty(); });
    REQUIRE(s.at_b.rejected.size() == 1);
    CHECK(contains(s.at_b.rejected[0].what(), "a message of 9223372036854775808 bytes, the cap is 65536"));
  }
  CHECK(raw.closed);
  CHECK(s.loop.now() - start < 3 * fl::second);  // about one when the machine is not overloaded
  still_serves(s);
}

TEST_CASE("after the handshake bad frames end the connection with the size and the cap") {
  auto ob = named("b");
  ob.frames.frame_cap = 64 << 10;
  two_sockets s(named("a"), ob);
  raw_socket raw(s.loop, s.where);
  raw.say(hello_frame());
  raw.listen(50 * fl::millisecond);
  raw.say(frame({.kind = fl::frame_kind::ready, .message = 2}, {}));
  s.wait([&] { return s.at_b.opened == 0; });
  REQUIRE(s.at_b.opened == 1);
  const std::vector<std::byte> data((64 << 10) + 1);
  SECTION("a frame over the cap") {
    raw.say(frame({.kind = fl::frame_kind::activation, .message = 3}, data));
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.closed.empty(); });
    REQUIRE(s.at_b.closed.size() == 1);
    CHECK(contains(s.at_b.closed[0].what(), "a chunk of 65537 bytes, the cap is 65536"));
  }
  SECTION("an absurd message") {
    raw.say(frame({.kind = fl::frame_kind::activation, .message = 3, .total_length = fl::u64(1) << 63}, fl::bytes_of("x")));
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.closed.empty(); });
    REQUIRE(s.at_b.closed.size() == 1);
    CHECK(contains(s.at_b.closed[0].what(), "a message of 9223372036854775808 bytes, the cap is 4294967296"));
  }
  SECTION("a damaged payload") {
    auto bytes = frame({.kind = fl::frame_kind::activation, .message = 3}, fl::const_byte_span(data).first(1000));
    bytes.back() ^= std::byte{1};
    raw.say(bytes);
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.closed.empty(); });
    REQUIRE(s.at_b.closed.size() == 1);
    CHECK(contains(s.at_b.closed[0].what(), "checksum"));
    CHECK(s.at_b.messages.empty());
  }
  SECTION("a second hello") {
    raw.say(hello_frame());
    raw.listen(2 * fl::second);
    s.wait([&] { return s.at_b.closed.empty(); });
    REQUIRE(s.at_b.closed.size() == 1);
  }
  SECTION("the end in the middle of a frame") {
    const auto bytes = frame({.kind = fl::frame_kind::activation, .message = 3}, fl::const_byte_span(data).first(1000));
    raw.say(fl::const_byte_span(bytes).first(500));
    raw.listen(20 * fl::millisecond);
    raw.close();
    s.wait([&] { return s.at_b.closed.empty(); });
    REQUIRE(s.at_b.closed.size() == 1);
    CHECK(s.at_b.closed[0].code() == fl::errc::peer_lost);
    CHECK(contains(s.at_b.closed[0].what(), "peer 'raw'"));
  }
  CHECK(s.at_b.messages.empty());
  still_serves(s);
}
