// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/bpe.hpp>

#include <random>

#include "catch.hpp"
#include "unit/bpe_tiny.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::tiny_source;

namespace {

const fl::bpe_tokenizer& tiny() {
  static const fl::bpe_tokenizer t{fl::bpe_vocabulary(tiny_source({{"a", "a"},
                                                                   {"aa", "aa"},
                                                                   {"b", "c"},
                                                                   {"a", "b"},
                                                                   {"ab", "c"},
                                                                   {" ", "t"},
                                                                   {" t", "h"},
                                                                   {"aa", "b"},
                                                                   {"\xE2", "\x82"},
                                                                   {"c", "aa"},
                                                                   {"t", "ab"}}))};
  return t;
}

std::vector<std::string> parts(std::string_view text, fl::special_text special = fl::special_text::ordinary) {
  std::vector<std::string> all;
  for (fl::u32 id : tiny().encode(text, special)) all.emplace_back(tiny().bytes(id));
  return all;
}
using texts = std::vector<std::string>;

/// The rule by its definition: of all neighbours the pair of the lowest rank, everywhere, from left to right.
std::vector<fl::u32> by_definition(const fl::bpe_vocabulary& v, std::string_view piece) {
  std::vector<fl::u32> t;
  for (char c : piece) t.push_back(v.of_byte(static_cast<unsigned char>(c)));
  while (true) {
    fl::u32 lowest = fl::merge_table::never;
    for (std::size_t i = 0; i + 1 < t.size(); ++i) lowest = (std::min)(lowest, v.merges().rank(t[i], t[i + 1]));
    if (lowest == fl::merge_table::never) return t;
    std::vector<fl::u32> joined;
    for (std::size_t i = 0; i < t.size(); ++i) {
      const bool join = i + 1 < t.size() && v.merges().rank(t[i], t[i + 1]) == lowest;
      joined.push_back(join ? v.merges()[lowest].result : t[i]);
      i += join;
    }
    t = joined;
  }
}

}  // namespace

TEST_CASE("merges go by rank, then from left to right") {
  CHECK(parts("aaa") == texts{"aa", "a"});
  CHECK(parts("aaaaaaa") == texts{"aaaa", "aa", "a"});
  CHECK(parts("abc") == texts{"a", "bc"});  // the earlier merge wins over the longer token
  CHECK(parts("aab") == texts{"aab"});
  CHECK(parts("aaab") == texts{"aa", "ab"});
  CHECK(parts(" the th") == texts{" th", "e", " th"});
  CHECK(parts("\xE2\x82\xAC") == texts{"\xE2\x82", "\xAC"});
  CHECK(parts("").empty());
  CHECK(parts("z") == texts{"z"});
}

TEST_CASE("short and long pieces follow one rule") {
  std::mt19937 random(7);
  fl::detail::bpe_merger merge(tiny().tokens(), true);
  for (int round = 0; round < 400; ++round) {
    const std::size_t n = 1 + random() % 300;
    std::string piece;
    while (piece.size() < n) piece += "aaabct"[random() % 6];
    const auto ids = merge(piece);
    INFO(piece);
    CHECK(std::vector<fl::u32>(ids.begin(), ids.end()) == by_definition(tiny().tokens(), piece));
  }
}

TEST_CASE("merges out of order follow the rule too") {
  // "ab" joins to "abc" before "a" and "b" join at all, and one token is made in two ways.
  auto s = tiny_source({{"ab", "c"}, {"a", "b"}, {"b", "c"}, {"abc", "abc"}});
  s.merges.emplace_back("a", "bc");
  std::swap(s.tokens[256].second, s.tokens[258].second);
  const fl::bpe_vocabulary v(s);
  fl::detail::bpe_merger merge(v, false);
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    std::string piece;
    for (std::size_t n = 1 + random() % 200; piece.size() < n;) piece += "abc"[random() % 3];
    const auto ids = merge(piece);
    INFO(piece);
    CHECK(std::vector<fl::u32>(ids.begin(), ids.end()) == by_definition(v, piece));
  }
}

TEST_CASE("a long run of one letter takes no quadratic time") {
  const std::string run(1 << 22, 'a');
  const auto ids = tiny().encode(run);
  CHECK(ids.size() == run.size() / 4);
  CHECK(tiny().decode(ids) == run);
}

TEST_CASE("decode gives back all bytes, UTF-8 or not") {
  std::mt19937 random(9);
  std::string text;
  for (int b = 0; b < 256; ++b) text += static_cast<char>(b);
  for (int i = 0; i < 20000; ++i) text += static_cast<char>(random());
  for (int i = 0; i < 20000; ++i) text += "a \xC3\xA9\xE2\x82\n"[random() % 8];
  CHECK(tiny().decode(tiny().encode(text)) == text);
  for (std::size_t n : {1u, 2u, 3u, 5u, 100u})
    CHECK(tiny().decode(tiny().encode(text.substr(200, n))) == text.substr(200, n));
}

TEST_CASE("special tokens are text unless they are asked for") {
  const fl::u32 end = fl::u32(tiny().vocabulary() - 1);
  const std::string text = "a<|endoftext|>b<|endoftext|><|endoftext|";
  const auto ordinary = tiny().encode(text);
  CHECK(std::find(ordinary.begin(), ordinary.end(), end) == ordinary.end());
  CHECK(tiny().decode(ordinary) == text);
  const auto special = tiny().encode(text, fl::special_text::token);
  CHECK(std::count(special.begin(), special.end(), end) == 2);
  CHECK(special[1] == end);
  CHECK(tiny().decode(special) == text);
  CHECK(parts("aa<|endoftext|>", fl::special_text::token) == texts{"aa", "<|endoftext|>"});
  CHECK(parts("  <|endoftext|>", fl::special_text::token).size() == 3);
}

TEST_CASE("of two special tokens at one place the longer is taken") {
  auto s = tiny_source({}, false);
  s.special = {{"<x>", 256}, {"<x><y>", 257}, {"\xC3\xA9 z", 258}};
  const fl::bpe_tokenizer t{fl::bpe_vocabulary(s)};
  CHECK(t.encode("<x><y><x>\xC3\xA9 z", fl::special_text::token) == std::vector<fl::u32>{257, 256, 258});
}

TEST_CASE("ids outside the vocabulary are refused") {
  for (fl::i64 id : {fl::i64(-1), tiny().vocabulary(), fl::i64(1) << 40})
    CHECK(error_of([&] { tiny().bytes(id); }).says(fl::errc::data, "token " + std::to_string(id), "expected 0 to 267"));
}

TEST_CASE("a stream holds back what is not yet a character") {
  fl::bpe_stream s(tiny());
  const auto add = [&](std::string_view byte) {
    return s.add(tiny().tokens().of_byte(static_cast<unsigned char>(byte[0])));
  };
  CHECK(add("a") == "a");
  CHECK(add("\xE2").empty());
  CHECK(add("\x82").empty());
  CHECK(add("\xAC") == "\xE2\x82\xAC");
  CHECK(add("\xF0").empty());
  CHECK(add("\x9F").empty());
  CHECK(add("\x98").empty());
  CHECK(add("\x80") == "\xF0\x9F\x98\x80");
  CHECK(add("\xC3").empty());
  CHECK(add("a") == "\xC3" "a");  // no character: given as it is
  CHECK(add("\x80") == "\x80");
  CHECK(add("\xFF") == "\xFF");
  CHECK(add("\xED").empty());
  CHECK(add("\xA0") == "\xED\xA0");  // a surrogate
  CHECK(add("\xE0").empty());
  CHECK(add("\x80") == "\xE0\x80");  // overlong
  CHECK(add("\xF4").empty());
  CHECK(s.finish() == "\xF4");
  CHECK(s.finish().empty());
}
