// SPDX-License-Identifier: Apache-2.0
// Case C25 for token files: every kind of file that is none, and the smallest that are.
#include <fusionllm/trainer/token_file.hpp>

#include <sys/stat.h>
#include <fusionllm/trainer/token_writer.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/file_size_limit.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

std::string write(const temporary_folder& folder, const std::string& name, std::vector<fl::u32> tokens,
                  fl::i64 vocabulary) {
  fl::token_writer w(folder / name, vocabulary, 77);
  for (fl::u32 t : tokens) w.add(t);
  w.finish();
  return folder / name;
}

/// The file with a field of its header changed, and sealed again or not.
template <class T>
std::string with_field(const temporary_folder& folder, const std::string& good, std::size_t at, T value,
                       bool seal = true) {
  std::string bytes = folder.read(good);
  fl::detail::token_header h;
  std::memcpy(h.data(), bytes.data(), fl::detail::token_header_bytes);
  h.put(at, value);
  if (seal) h.seal();
  return folder.write("changed.bin", std::string(h.data(), fl::detail::token_header_bytes)
                                         + bytes.substr(fl::detail::token_header_bytes));
}

auto opening(const std::string& path, fl::i64 vocabulary = 1 << 20) {
  return error_of([&] { fl::mapped_token_file f(path, vocabulary); });
}

}  // namespace

TEST_CASE("tokens come back, two or four bytes wide") {
  temporary_folder folder;
  const std::vector<fl::u32> few{0, 1, 255, 256, 50256}, many{0, 65535, 65536, 99999};
  const fl::mapped_token_file a(write(folder, "a.bin", few, 50257), 50257),
      b(write(folder, "b.bin", many, 100000), 100000);
  CHECK(a.format() == fl::token_format::uint16);
  CHECK(b.format() == fl::token_format::uint32);
  REQUIRE(a.count() == 5);
  for (fl::i64 i = 0; i < 5; ++i) CHECK(a[i] == few[std::size_t(i)]);
  for (fl::i64 i = 0; i < 4; ++i) CHECK(b[i] == many[std::size_t(i)]);
  CHECK(a.info().tokenizer == 77);
  CHECK(a.vocabulary() == 50257);
  CHECK(folder.read("a.bin").size() == 64 + 10);
  CHECK(fl::token_width(65536) == 2);
  CHECK(fl::token_width(65537) == 4);
  CHECK(fl::is_token_file(folder / "a.bin"));
}

TEST_CASE("none and one token make files") {
  temporary_folder folder;
  CHECK(fl::mapped_token_file(write(folder, "none", {}, 300)).count() == 0);
  CHECK(fl::mapped_token_file(write(folder, "one", {299}, 300)).count() == 1);
}

TEST_CASE("more tokens than a buffer holds") {
  temporary_folder folder;
  const fl::i64 n = 1'100'000;
  {
    fl::token_writer w(folder / "long", 1000, 0);
    for (fl::i64 i = 0; i < n; ++i) w.add(fl::u32(i % 997));
    CHECK(w.count() == fl::u64(n));
    CHECK_FALSE(std::ifstream(folder / "long").good());  // not there before it is whole
    w.finish();
  }
  const fl::mapped_token_file f(folder / "long");
  REQUIRE(f.count() == n);
  for (fl::i64 i = 0; i < n; i += 991) CHECK(f[i] == fl::u32(i % 997));
}

TEST_CASE("what is cut off, damaged or too long says so with counts") {
  temporary_folder folder;
  const auto good = folder.read((write(folder, "good", {1, 2, 3, 4, 5}, 300), "good"));
  for (std::size_t n : {0u, 1u, 8u, 63u})
    CHECK(opening(folder.write("cut", good.substr(0, n)))
              .says(fl::errc::data, "has " + std::to_string(n) + " bytes", "64 of header"));
  for (std::size_t n : {64u, 65u, 73u})
    CHECK(
        opening(folder.write("cut", good.substr(0, n)))
            .says(fl::errc::data, "holds " + std::to_string((n - 64) / 2) + " whole tokens", "expected 5", "cut off"));
  for (const char* more : {"x", "xx", "xxxx"})
    CHECK(opening(folder.write("more", good + more)).says(fl::errc::data, "expected 5 of 2 bytes", "behind its end"));
  for (std::size_t at = 8; at < good.size(); ++at) {  // no single damaged byte is overlooked
    auto bad = good;
    bad[at] = char(bad[at] ^ 1);
    INFO(at);
    CHECK(opening(folder.write("bad", bad)).code == fl::errc::data);
  }
  CHECK(
      opening(folder.write("text", std::string(100, 'x'))).says(fl::errc::data, "does not begin as one", "`tokenize`"));
}

TEST_CASE("headers that lie") {
  temporary_folder folder;
  write(folder, "good", {1, 2, 3, 4}, 300);
  using fl::u32, fl::u64;
  CHECK(opening(with_field(folder, "good", 24, u64(1) << 63))
            .says(fl::errc::data, "holds 4 whole tokens", "expected 9223372036854775808"));
  CHECK(opening(with_field(folder, "good", 24, ~u64(0))).says(fl::errc::data, "holds 4 whole tokens"));
  CHECK(opening(with_field(folder, "good", 24, u64(3))).says(fl::errc::data, "expected 3", "behind its end"));
  CHECK(opening(with_field(folder, "good", 24, u64(3), false)).says(fl::errc::data, "damaged header"));
  for (u32 width : {0u, 1u, 3u, 8u, ~0u})
    CHECK(opening(with_field(folder, "good", 12, width)).says(fl::errc::data, "expected 2 or 4"));
  CHECK(opening(with_field(folder, "good", 12, u32(4))).says(fl::errc::data, "holds 2 whole tokens"));
  CHECK(opening(with_field(folder, "good", 8, u32(2))).says(fl::errc::data, "version 2, expected 1"));
  for (u64 v : {u64(0), u64(65537), ~u64(0)})
    CHECK(opening(with_field(folder, "good", 16, v)).says(fl::errc::data, "a vocabulary of"));
  CHECK(opening(with_field(folder, "good", 16, u64(4)))
            .says(fl::errc::data, "token 3 of", "is 4 (at byte 70)", "expected 0 to 3", "damaged"));
  CHECK(opening(with_field(folder, "good", 40, u64(4))).says(fl::errc::data, "does not fit its checksum"));
}

TEST_CASE("of a file above 1 GiB, which takes no space here, a token is checked when it is read") {
  temporary_folder folder;
  const fl::token_file_info info{2, 1000, (fl::u64(1) << 29) + 1, 0, 0};
  const auto header = fl::detail::header_of(info);
  const auto path = folder.write("sparse", std::string(header.data(), fl::detail::token_header_bytes) + "\x01\x02\xE8\x03");
  if (::truncate(path.c_str(), off_t(fl::detail::token_header_bytes + info.count * 2)) != 0) return;
  const fl::mapped_token_file f(path);
  CHECK(f.count() == fl::i64(info.count));
  CHECK(f[0] == 513);
  CHECK(f[f.count() - 1] == 0);
  CHECK(error_of([&] { f[1]; }).says(fl::errc::data, "token 1 of", "is 1000 (at byte 66)", "expected 0 to 999"));
}

TEST_CASE("a vocabulary larger than the model's is refused, a smaller one is not") {
  temporary_folder folder;
  const auto path = write(folder, "a", {1}, 300);
  CHECK(opening(path, 299).says(fl::errc::data, "a vocabulary of 300 tokens, the model knows 299"));
  CHECK(opening(path, 300).code == fl::errc::ok);
  CHECK(opening(path, 50304).code == fl::errc::ok);
}

TEST_CASE("no token file where one is expected is named") {
  temporary_folder folder;
  CHECK(opening(folder / "absent").says(fl::errc::data, "No such file"));
  CHECK(opening(folder.path()).says(fl::errc::data, "is a directory"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(opening(folder / "pipe").says(fl::errc::data, "is a pipe or a device"));
  for (const auto& path :
       {folder / "absent", folder.path(), folder / "pipe", folder.write("short", "FLM"), folder.write("empty", "")})
    CHECK_FALSE(fl::is_token_file(path));
}

TEST_CASE("a writer that ends early leaves nothing, and the old file as it was") {
  temporary_folder folder;
  folder.write("tokens", "old");
  {
    fl::token_writer w(folder / "tokens", 10, 0);
    w.add(9);
    CHECK(error_of([&] { w.add(10); }).says(fl::errc::data, "token 1 is 10", "expected 0 to 9"));
  }
  CHECK(folder.read("tokens") == "old");
  CHECK(folder.names() == std::vector<std::string>{"tokens"});
  CHECK(error_of([&] {
          fl::token_writer w(folder / "no/such/folder", 10, 0);
        }).says(fl::errc::data, "cannot create", "No such file"));
  CHECK(error_of([&] { fl::token_writer w(folder / "x", 0, 0); }).says(fl::errc::data, "a vocabulary of 0"));
  const auto full = error_of([&] {
    const fusionllm_test::file_size_limit limit(0);
    fl::token_writer w(folder / "full", 10, 0);
  });
  CHECK(full.says(fl::errc::resource, "free some space"));
}

TEST_CASE("the digest is that of tokens, vocabulary and tokenizer") {
  temporary_folder folder;
  const auto digest = [&](std::vector<fl::u32> t, fl::i64 v) {
    return fl::mapped_token_file(write(folder, "d", t, v)).digest();
  };
  CHECK(digest({1, 2}, 300) == digest({1, 2}, 300));
  CHECK(digest({1, 2}, 300) != digest({2, 1}, 300));
  CHECK(digest({1, 2}, 300) != digest({1, 2}, 301));
  CHECK(digest({}, 300) != digest({0}, 300));
}
