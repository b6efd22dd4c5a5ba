// SPDX-License-Identifier: Apache-2.0
// Case C22: every kind of bad safetensors file is an error of its own that names key and byte; unusual good ones load.
#include <fusionllm/trainer/safetensors.hpp>

#include <sys/resource.h>
#include <sys/wait.h>

#include <random>
#include <set>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fl::u64;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

std::string little(u64 n) {
  std::string s(8, '\0');
  std::memcpy(s.data(), &n, 8);
  return s;
}
template <class... T>
std::string raw(T... values) {
  std::string s;
  ((s.append(reinterpret_cast<const char*>(&values), sizeof values)), ...);
  return s;
}
std::string file_of(const std::string& header, const std::string& data = "") { return little(header.size()) + header + data; }
std::string entry(const std::string& name, const std::string& type, const std::string& shape, u64 begin, u64 end) {
  return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(begin) + ","
         + std::to_string(end) + "]}";
}
std::string one(const std::string& type, const std::string& shape, const std::string& data) {
  return file_of("{" + entry("x", type, shape, 0, data.size()) + "}", data);
}

struct files {
  temporary_folder folder;
  fl::safetensors_file open(const std::string& content) const { return fl::safetensors_file(folder.write("f", content)); }
  auto error(const std::string& content) const {
    return error_of([&] { open(content); });
  }
  template <class T = float>
  std::vector<T> values(const std::string& content, const std::string& name = "x") const {
    const auto f = open(content);
    const auto* t = f.find(name);
    REQUIRE(t);
    std::vector<T> v(std::size_t(t->count));
    f.read(*t, std::span<T>(v));
    return v;
  }
};

const std::string eight(8, '\1');

}  // namespace

TEST_CASE("a good file is read") {
  const files f;
  const std::string text = file_of(R"({"__metadata__":{"format":"pt","a\"b":"\u00e9"},)" + entry("b", "F32", "2,2", 8, 24) + "," +
                                       entry("a", "F64", "1", 0, 8) + "}   ",
                                   raw(1.5, 1.f, 2.f, 3.f, -0.f));
  const auto file = f.open(text);
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.tensors()[1].shape == std::vector<u64>{2, 2});
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.find("c") == nullptr);
  CHECK(f.values(text, "b") == std::vector<float>{1, 2, 3, -0.f});
  CHECK(f.values<double>(text, "a") == std::vector<double>{1.5});
  CHECK(f.values(text, "a") == std::vector<float>{1.5f});
  std::vector<float> turned(4), part(2);
  file.read_transposed(*file.find("b"), 2, std::span(turned));
  CHECK(turned == std::vector<float>{1, 3, 2, 0});
  file.read(*file.find("b"), std::span(part));
  CHECK(part == std::vector<float>{1, 2});
  CHECK(f.open(file_of("{}")).tensors().empty());
}

TEST_CASE("each bad file is another error, with its byte") {
  const files f;
  std::set<std::string> texts;
  const auto bad = [&](const std::string& content, const auto&... parts) {
    const auto e = f.error(content);
    INFO(e.text);
    CHECK(e.says(fl::errc::checkpoint, parts...));
    CHECK(e.text.find("f'") != std::string::npos);
    CHECK(texts.insert(e.text).second);
  };
  bad("", "is empty");
  bad("1234567", "7 bytes", "at byte 0");
  bad(little(0), "at byte 0", "no bytes");  // which ends where the header would begin
  CHECK(f.error(little(0) + "x").says(fl::errc::checkpoint, "at byte 0", "no bytes"));
  bad(little(u64(1) << 63) + "{}", "at byte 0", "9223372036854775808", "2 behind");
  bad(little(3) + "{}", "at byte 0", "header of 3 bytes");
  bad(little(~u64(0)) + "{}", "18446744073709551615");
  bad(file_of("x{}"), "at byte 8", "does not begin with {");
  bad(file_of("{\"a\":}"), "at byte 14", "not JSON");
  bad(file_of("{} x"), "not JSON");
  bad(file_of("{\"a"), "not JSON");
  bad(file_of("{\"\xff\":1}"), "not JSON");
  const std::string x = entry("x", "F32", "2", 0, 8);
  bad(file_of("{" + x + "," + x + "}", eight), "at byte 62", "'x' comes twice");
  bad(file_of(R"({"__metadata__":{},"__metadata__":{}})"), "'__metadata__' comes twice");
  bad(file_of(R"({"__metadata__":{"a":"","a":""}})"), "'a' comes twice in __metadata__");
  bad(file_of(R"({"x":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", eight), "'x'", "'dtype' comes twice");
  bad(file_of(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"scale":1}})", eight), "'x'", "'scale' is unknown");
  bad(file_of(R"({"x":{"shape":[2],"data_offsets":[0,8]}})", eight), "'x'", "dtype is missing");
  bad(file_of(R"({"x":{"dtype":"F32","data_offsets":[0,8]}})", eight), "'x'", "shape is missing");
  bad(file_of(R"({"x":{"dtype":"F32","shape":[2]}})", eight), "'x'", "data_offsets is missing");
  bad(file_of(R"({"x":{"dtype":1}})"), "'x'.'dtype' is the number 1, expected a text");
  bad(file_of(R"({"x":{"dtype":{}}})"), "'x'.'dtype' is an object");
  bad(file_of(R"({"x":{"shape":2}})"), "'x'.'shape' is the number 2, expected a list");
  bad(file_of(R"({"x":{"shape":["2"]}})"), "'x'.'shape' is a text, expected whole numbers");
  bad(file_of(R"({"x":{"shape":[-2]}})"), "'x'.'shape' is the number -2");
  bad(file_of(R"({"x":{"shape":[2.5]}})"), "'x'.'shape' is the number 2.5");
  bad(file_of(R"({"x":{"shape":[18446744073709551616]}})"), "'x'.'shape' is the number 18446744073709551616");
  bad(file_of(R"({"x":{"shape":[[2]]}})"), "'x'.'shape' is a list");
  bad(file_of(R"({"x":{"shape":[null]}})"), "'x'.'shape' is null");
  bad(file_of(R"({"x":{"data_offsets":[0]}})"), "'x'", "1 numbers, expected two");
  bad(file_of(R"({"x":{"data_offsets":[0,1,2]}})"), "'x'", "more than two");
  bad(file_of(R"({"x":true})"), "'x' is true or false");
  bad(file_of(R"({"x":[1]})"), "'x' is a list");
  bad(file_of(R"({"__metadata__":{"a":1}})"), "'a' is the number 1, expected a text");
  bad(file_of("{" + entry("x", "F32", "2", 8, 0) + "}", eight), "at byte 12", "'x'", "begins at 8, behind its end at 0");
  bad(file_of("{" + entry("x", "F32", "2", 0, 8) + "," + entry("y", "F32", "2", 4, 12) + "}", eight + eight.substr(4)), "'y' begins here",
      "inside tensor 'x'", "at byte 1");
  bad(file_of("{" + entry("x", "F32", "1", 4, 8) + "}", eight), "gap of 4 bytes between the header and tensor 'x'");
  bad(file_of("{" + entry("x", "F32", "1", 0, 4) + "," + entry("y", "F32", "1", 6, 10) + "}", eight + "12"),
      "gap of 2 bytes between tensor 'x' and tensor 'y'");
  bad(file_of("{" + x + "}", eight + "1"), "1 bytes too many behind the last tensor, 'x'");
  bad(file_of("{}", "1"), "1 bytes too many behind the header");
  bad(file_of("{" + x + "}", "1234567"), "'x'", "ends at 8, the file has 7 bytes");
  bad(one("F32", "3", eight), "'x'", "F32 [3] takes 12 bytes, it has 8");
  bad(one("F32", "0", eight), "F32 [0] takes 0 bytes, it has 8");
  bad(one("F32", "4294967296,4294967296", eight), "'x'", "more bytes than 64 bits");
  bad(one("F64", "2305843009213693952", ""), "[2305843009213693952]", "more bytes than 64 bits");
  bad(one("F4", "3", "12"), "F4 [3] takes 1 bytes");
  bad(one("Q4_K", "2", eight), "'x'", "dtype 'Q4_K' is unknown");
  bad(file_of("{\"deep\":" + std::string(100'000, '[')), "'deep' is a list");
  std::string rank;
  for (int i = 0; i < 65; ++i) rank += i ? ",1" : "1";
  bad(one("F32", rank, "1234"), "a rank above 64");
}

TEST_CASE("what is no safetensors file is recognized") {
  const files f;
  const auto named = [&](const std::string& content, const std::string& kind) {
    const auto e = f.error(content);
    INFO(e.text);
    CHECK(e.says(fl::errc::checkpoint, kind, "expected safetensors"));
  };
  using namespace std::string_literals;
  named("PK\3\4\0\0\10\10\0\0\0\0archive/data.pkl"s, "zip archive with a pickle");
  named("\x80\2\x8a\nl\xfc\x9c""F\xf9 j\xa8P\x19.\x80\2"s, "Python pickle");
  named("GGUF\3...abcdefgh", "GGUF");
  named("\x89HDF\r\n\x1a\nabcdefgh", "HDF5");
  named("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git-lfs");
  named(R"({"weight_map": {"a": "b"}})", "an index of shards");
  named("FLMCKPT\n........", "checkpoint of fusionllm");
  // A header of 640 bytes begins as a pickle of protocol 2 does, and is none.
  std::string header = "{" + entry("x", "F32", "", 0, 4) + "}";
  header.resize(0x280, ' ');
  CHECK(f.values(file_of(header, raw(2.f))) == std::vector<float>{2});
  CHECK(error_of([&] { fl::safetensors_file(f.folder.path()); }).says(fl::errc::checkpoint, "is a directory"));
  CHECK(error_of([&] { fl::safetensors_file(f.folder / "absent"); }).says(fl::errc::checkpoint, "absent", "No such file"));
}

TEST_CASE("zero-size, scalar and unaligned tensors load") {
  const files f;
  CHECK(f.values(one("F32", "0", "")).empty());
  CHECK(f.values(one("F32", "4294967296,0,4294967296,4294967296", "")).empty());
  CHECK(f.values(one("F32", "", raw(7.f))) == std::vector<float>{7});
  for (std::size_t shift = 1; shift < 8; ++shift) {
    std::string header = "{" + entry("a", "U8", std::to_string(shift), 0, shift) + "," + entry("x", "F32", "2", shift, shift + 8) + "}";
    header.resize((header.size() + 7) / 8 * 8 + 1, ' ');
    CHECK(f.values(file_of(header, eight.substr(0, shift) + raw(1.f, -3.f))) == std::vector<float>{1, -3});
  }
  // Several of no bytes at one place, also between others.
  CHECK(f.open(file_of("{" + entry("a", "F32", "0", 4, 4) + "," + entry("y", "F32", "0", 0, 0) + "," + entry("c", "F32", "0", 4, 4) + "," +
                           entry("x", "F32", "1", 0, 4) + "}",
                       "1234"))
            .tensors()
            .size()
        == 4);
}

TEST_CASE("types widen exactly or say that they do not") {
  const files f;
  std::string all(131072, '\0');
  for (unsigned i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(all.data() + 2 * i, &bits, 2);
  }
  const auto wide = f.values(one("BF16", "65536", all)), half = f.values(one("F16", "65536", all));
  const auto wider = f.values<double>(one("BF16", "65536", all));
  for (unsigned i = 0; i < 65536; ++i) {
    const fl::u32 bits = std::bit_cast<fl::u32>(wide[i]);
    if (bits != i << 16) FAIL("BF16 " << i);
    if (wide[i] == wide[i] && wider[i] != double(wide[i])) FAIL("BF16 to double " << i);
    const float expected = std::ldexp(float((i & 0x7C00) ? (i & 0x3FF) | 0x400 : i & 0x3FF), int((i & 0x7C00) ? i >> 10 & 31 : 1) - 25);
    if ((i & 0x7C00) != 0x7C00 && half[i] != ((i & 0x8000) ? -expected : expected)) FAIL("F16 " << i);
  }
  CHECK(std::isinf(half[0x7C00]));
  CHECK(std::isnan(half[0x7C01]));
  CHECK(f.values(one("F64", "2", raw(0.1, -1e38))) == std::vector<float>{0.1f, -1e38f});
  CHECK(f.values<double>(one("F32", "1", raw(0.1f))) == std::vector<double>{double(0.1f)});
  CHECK(f.values(one("I8", "2", "\xff\2")) == std::vector<float>{-1, 2});
  CHECK(f.values(one("U8", "2", "\xff\2")) == std::vector<float>{255, 2});
  CHECK(f.values(one("I64", "2", raw(std::int64_t(-16777216), std::int64_t(5)))) == std::vector<float>{-16777216, 5});
  const auto refused = [&](const std::string& content, const auto&... parts) {
    const auto e = error_of([&] { f.values(content); });
    INFO(e.text);
    CHECK(e.says(fl::errc::checkpoint, "'x'", "at byte ", parts...));
  };
  refused(one("I64", "2", raw(std::int64_t(5), std::int64_t(16777217))), "element 1", "I64");
  refused(one("I64", "1", raw(std::int64_t(INT64_MIN + 1))), "element 0");
  refused(one("U32", "1", raw(fl::u32(4294967295u))), "element 0", "U32");
  refused(one("F64", "1", raw(1e39)), "element 0", "F64");
  CHECK(f.values<double>(one("U32", "1", raw(fl::u32(4294967295u)))) == std::vector<double>{4294967295.0});
  for (const char* type : {"F8_E4M3", "F8_E5M2", "BOOL", "F8_E8M0"}) refused(one(type, "8", eight), type, "is not supported");
  refused(one("F4", "2", "\1"), "F4");
  refused(one("C64", "1", eight), "C64");
}

TEST_CASE("a matrix is read as its transpose, at any size, and the first of more columns") {
  const files f;
  for (std::size_t rows : {1u, 3u, 64u, 65u, 200u})
    for (std::size_t columns : {1u, 2u, 63u, 130u})
      for (std::size_t more : {0u, 5u}) {
        std::string data;
        for (std::size_t c = 0; c < columns; ++c)
          for (std::size_t r = 0; r < rows + more; ++r) data += raw(float(r * 1000 + c));
        const auto file = f.open(one("F32", std::to_string(columns) + "," + std::to_string(rows + more), data));
        std::vector<double> v(rows * columns);
        file.read_transposed(*file.find("x"), rows, std::span(v));
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t c = 0; c < columns; ++c)
            if (v[r * columns + c] != double(r * 1000 + c)) FAIL(rows << ' ' << columns << ' ' << r << ' ' << c);
      }
}

TEST_CASE("no damage or noise does harm") {
  const files f;
  const std::string good = file_of(R"({"__metadata__":{"format":"pt"},)" + entry("b", "F32", "2,2", 8, 24) + "," + entry("a", "BF16", "4", 0, 8)
                                       + "," + entry("z", "F64", "0", 24, 24) + "}",
                                   std::string(24, '\3'));
  std::mt19937_64 random(1);
  const auto use = [&](const std::string& content) {
    const auto e = error_of([&] {
      const auto file = f.open(content);
      for (const auto& t : file.tensors()) {
        if (t.count > content.size()) return;
        std::vector<float> v(std::size_t(t.count));
        file.read(t, std::span(v));
      }
    });
    if (e.code != fl::errc::ok && e.code != fl::errc::checkpoint) FAIL(e.text);
  };
  for (int i = 0; i < 6'000; ++i) {
    std::string s = good;
    for (u64 k = random() % 4 + 1; k > 0; --k) {
      const std::size_t at = random() % (random() % 2 ? s.size() : 40);
      switch (random() % 5) {
        case 0: s[at] = static_cast<char>(random()); break;
        case 1: s[at] = static_cast<char>(s[at] ^ (1 << random() % 8)); break;
        case 2: s.erase(at, random() % 9); break;
        case 3: s.insert(at, s.substr(random() % s.size(), random() % 30)); break;
        default: s[at] = "0123456789[]{},:\""[random() % 17];
      }
      if (s.size() < 48) s.resize(48);
    }
    if (random() % 2) s.replace(0, 8, little(s.size() < 32 ? 0 : s.size() - 32));
    use(s);
  }
  for (int i = 0; i < 2'000; ++i) {
    std::string s(random() % 200, '\0');
    for (char& c : s) c = static_cast<char>(random());
    if (random() % 2 && s.size() > 9) s.replace(0, 9, little(s.size() - 8) + "{");
    use(s);
  }
  for (std::size_t n = 0; n < good.size(); ++n) CHECK(f.error(good.substr(0, n)).code == fl::errc::checkpoint);
}

// A header that says that it is huge is refused before anything of its size is allocated.
TEST_CASE("lengths are compared before memory is asked for") {
  const files f;
  const auto path = f.folder.write("f", little(u64(1) << 40) + "{}");
  const auto sparse = f.folder / "sparse";
  REQUIRE(::truncate(f.folder.write("sparse", little(u64(2) << 30) + "{}").c_str(), off_t(4) << 30) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit data{256 << 20, 256 << 20};  // of the heap; what is mapped privately and only read does not count
    ::setrlimit(RLIMIT_DATA, &data);
    int status = 0;
    for (const auto& p : {path, sparse})
      if (!error_of([&] { fl::safetensors_file{p}; }).says(fl::errc::checkpoint, "a header of")) status = 1;
    ::_exit(status);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}
