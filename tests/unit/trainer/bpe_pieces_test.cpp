// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/bpe_pieces.hpp>

#include <string>
#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

using texts = std::vector<std::string>;
texts pieces(std::string_view text) {
  texts all;
  while (!text.empty()) {
    const std::size_t n = fl::first_piece(text);
    REQUIRE(n > 0);
    REQUIRE(n <= text.size());
    all.emplace_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return all;
}

static_assert(fl::first_piece("Hello world") == 5);

}  // namespace

TEST_CASE("words, numbers, signs, each with a space before it") {
  CHECK(pieces("To be, or 12 not!!") == texts{"To", " be", ",", " or", " 12", " not", "!!"});
  CHECK(pieces("a1b2") == texts{"a", "1", "b", "2"});
  CHECK(pieces("a_b-c") == texts{"a", "_", "b", "-", "c"});
  CHECK(pieces(" (x)") == texts{" (", "x", ")"});
}

TEST_CASE("contractions, small letters only, before everything else") {
  CHECK(pieces("I'm she'll they've don't it's you're he'd")
        == texts{"I", "'m", " she", "'ll", " they", "'ve", " don", "'t", " it", "'s", " you", "'re", " he", "'d"});
  CHECK(pieces("IT'S") == texts{"IT", "'", "S"});
  CHECK(pieces("'stop") == texts{"'s", "top"});
  CHECK(pieces(" 's") == texts{" '", "s"});
  CHECK(pieces("''s") == texts{"''", "s"});
  CHECK(pieces("'l 'v 'r '") == texts{"'", "l", " '", "v", " '", "r", " '"});
}

TEST_CASE("white space leaves its last character to the next piece") {
  CHECK(pieces("a   b") == texts{"a", "  ", " b"});
  CHECK(pieces("a \n b") == texts{"a", " \n", " b"});
  CHECK(pieces("a\r\nb") == texts{"a", "\r", "\n", "b"});
  CHECK(pieces("a\n\n\nb") == texts{"a", "\n\n", "\n", "b"});
  CHECK(pieces("a\tb") == texts{"a", "\t", "b"});
  CHECK(pieces("   ") == texts{"   "});
  CHECK(pieces("a  ") == texts{"a", "  "});
  CHECK(pieces(" ") == texts{" "});
  CHECK(pieces("\u00A0x\u3000\u3000y") == texts{"\u00A0", "x", "\u3000", "\u3000", "y"});
}

TEST_CASE("classes of Unicode: letters, numbers, spaces, and what is neither") {
  CHECK(pieces("na\u00EFve \u4E2D\u6587 \u05E9\u05DC\u05D5\u05DD")
        == texts{"na\u00EFve", " \u4E2D\u6587", " \u05E9\u05DC\u05D5\u05DD"});
  CHECK(pieces("e\u0301") == texts{"e", "\u0301"});  // a combining mark is no letter
  CHECK(pieces("\u00BD\u0663\u2167x") == texts{"\u00BD\u0663\u2167", "x"});
  CHECK(pieces("\u200B\u200D\uFEFF") == texts{"\u200B\u200D\uFEFF"});  // of no width, and no space
  CHECK(pieces("\x1C\x7F") == texts{"\x1C\x7F"});
  CHECK(pieces("a\u0085"
               "b")
        == texts{"a", "\u0085", "b"});
  CHECK(pieces("\U0001F1E9\U0001F1EA \U0001E900") == texts{"\U0001F1E9\U0001F1EA", " \U0001E900"});
  CHECK(pieces(std::string_view("a\0b", 3)) == texts{"a", std::string(1, '\0'), "b"});
}

TEST_CASE("bytes that are no UTF-8 are signs") {
  CHECK(pieces("a\xFF\xFE"
               "b")
        == texts{"a", "\xFF\xFE", "b"});
  CHECK(pieces("\xC3") == texts{"\xC3"});
  CHECK(pieces("x\xE4\xB8") == texts{"x", "\xE4\xB8"});
  CHECK(pieces("\xED\xA0\x80!") == texts{"\xED\xA0\x80!"});  // a surrogate
  CHECK(pieces("\xC0\x80") == texts{"\xC0\x80"});            // overlong
  CHECK(pieces(" \xFFz") == texts{" \xFF", "z"});
}

TEST_CASE("every code point at the edges of its class") {
  const auto kind = [](fl::u32 c) { return int(fl::detail::class_of_code_point(c)); };
  CHECK(kind('a') == 1);
  CHECK(kind('@') == 0);
  CHECK(kind('[') == 0);
  CHECK(kind('9') == 2);
  CHECK(kind(':') == 0);
  CHECK(kind(0) == 0);
  CHECK(kind(0x10FFFF) == 0);
  CHECK(kind(0x4DFF) == 0);
  CHECK(kind(0x4E00) == 1);
  CHECK(kind(0x9FFF) == 1);
  CHECK(kind(0xA000) == 1);
  CHECK(kind(0x2028) == 3);
  int counts[4] = {};
  for (fl::u32 c = 0; c < 0x110000; ++c) ++counts[kind(c)];
  CHECK(counts[1] == 141028);  // Unicode 16
  CHECK(counts[2] == 1911);
  CHECK(counts[3] == 25);
}
