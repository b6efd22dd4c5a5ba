// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/bytes.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("numbers are little-endian on the wire") {
  std::byte out[8];
  fl::store_little(out, fl::u32(0x01020304));
  CHECK(std::to_integer<int>(out[0]) == 4);
  CHECK(std::to_integer<int>(out[3]) == 1);
  CHECK(fl::load_little<fl::u32>(out) == 0x01020304);
  fl::store_little(out, ~fl::u64(0) - 5);
  CHECK(fl::load_little<fl::u64>(out) == ~fl::u64(0) - 5);
}

TEST_CASE("a reader gives back what a writer wrote") {
  fl::byte_writer w;
  const std::byte blob[] = {std::byte{1}, std::byte{2}};
  w.number(fl::u8(7)).number(fl::i64(-3)).real(0.1).text("loss").blob(blob);
  fl::byte_reader r(w.bytes());
  CHECK(r.number<fl::u8>("a") == 7);
  CHECK(r.number<fl::i64>("b") == -3);
  CHECK(r.real("c") == 0.1);
  CHECK(r.text(10, "d") == "loss");
  CHECK(r.blob(2, "e").size() == 2);
  CHECK_NOTHROW(r.end("record"));
}

TEST_CASE("a reader believes no length") {
  auto message = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const fl::error& e) {
      CHECK(e.code() == fl::errc::protocol);
      return e.what();
    }
    return "no error";
  };
  fl::byte_writer w;
  w.number(fl::u32(0xFFFFFFFF));
  CHECK(message([&] { fl::byte_reader(w.bytes()).text(100, "name"); }) ==
        "name: claims a length of 4294967295, the limit is 100");
  CHECK(message([&] { fl::byte_reader(w.bytes()).text(0xFFFFFFFF, "name"); }).find("are left") != std::string::npos);
  CHECK(message([&] { fl::byte_reader(w.bytes()).count(0xFFFFFFFF, 8, "list"); }) ==
        "list: claims 4294967295 entries, 0 bytes are left: the message is damaged");
  CHECK(message([&] { fl::byte_reader(w.bytes()).number<fl::u64>("step"); }) ==
        "step: needs 8 bytes, 4 are left: the message was cut short or is damaged");
  CHECK(message([&] { fl::byte_reader(w.bytes()).end("hello"); }) == "hello: 4 bytes too many at its end");
}
