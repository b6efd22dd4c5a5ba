// SPDX-License-Identifier: Apache-2.0
// Vocabulary files in all their forms, and every way in which one can be wrong.
#include <fusionllm/trainer/bpe_files.hpp>

#include <sys/stat.h>

#include "catch.hpp"
#include "unit/bpe_tiny.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

fl::bpe_source three() { return tiny_source({{"a", "b"}, {"ab", "c"}, {" ", "ab"}}); }

std::string tokenizer_json(const fl::bpe_source& s, const std::string& more = "", bool lists = false) {
  std::string merges;
  for (const auto& [l, r] : s.merges)
    merges += (merges.empty() ? "" : ", ") + (lists ? "[\"" + l + "\", \"" + r + "\"]" : "\"" + l + " " + r + "\"");
  return "{\"model\": {\"type\": \"BPE\", \"vocab\": " + tokens_json(s) + ", \"merges\": [" + merges
         + "]}, \"added_tokens\": [{\"id\": " + std::to_string(s.tokens.back().second)
         + ", \"content\": \"<|endoftext|>\", \"special\": true}], "
         + (more.empty() ? "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}" : more) + "}";
}

caught refused(const fl::bpe_source& s) {
  return error_of([&] { fl::bpe_vocabulary v(s); });
}

}  // namespace

TEST_CASE("symbols stand for bytes, one to one") {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  std::string back;
  REQUIRE(fl::bytes_of_symbols(fl::symbols_of(all), back));
  CHECK(back == all);
  CHECK(fl::symbols_of(" \n~!") == "\u0120\u010A~!");
  CHECK(fl::symbols_of("\x80\xAD\xFF") == "\u0122\u0143\u00FF");
  for (const char* wrong : {" ", "\n", "\u0144", "\u00AD", "\u4E2D", "\xC4", "\xFF", "\xC4\x20"})
    CHECK_FALSE(fl::bytes_of_symbols(wrong, back));
}

TEST_CASE("one vocabulary in four forms") {
  temporary_folder folder;
  const auto s = three();
  const fl::bpe_vocabulary direct(s);
  folder.write("encoder.json", tokens_json(s));
  folder.write("vocab.bpe", merges_text(s));
  std::string windows = merges_text(s).substr(14);
  for (std::size_t i = 0; (i = windows.find('\n', i)) != std::string::npos; i += 2) windows.insert(i, "\r");
  CHECK(fl::read_bpe_vocabulary(folder.path()).identity() == direct.identity());
  for (const char* name : {"encoder.json", "vocab.bpe"})
    CHECK(fl::read_bpe_vocabulary(folder / name).identity() == direct.identity());
  temporary_folder other;
  other.write("vocab.json", tokens_json(s));
  other.write("merges.txt", windows);  // no first line, carriage returns
  CHECK(fl::read_bpe_vocabulary(other.path()).identity() == direct.identity());
  for (bool lists : {false, true}) {
    const auto v = fl::read_bpe_vocabulary(folder.write("any.json", tokenizer_json(s, "", lists)));
    CHECK(v.identity() == direct.identity());
    REQUIRE(v.special().size() == 1);
    CHECK(v.special()[0].id == 259);
  }
  CHECK(direct.bytes(258) == " ab");
  auto changed = s;
  std::swap(changed.merges[0], changed.merges[1]);
  CHECK(fl::bpe_vocabulary(changed).identity() != direct.identity());
}

TEST_CASE("paths that hold no vocabulary") {
  temporary_folder folder;
  CHECK(error_of([&] {
          fl::read_bpe_vocabulary(folder / "absent");
        }).says(fl::errc::data, "No such file", "encoder.json and vocab.bpe"));
  CHECK(error_of([&] { fl::read_bpe_vocabulary(folder.path()); }).says(fl::errc::data, "holds none of encoder.json"));
  folder.write("encoder.json", tokens_json(three()));
  CHECK(error_of([&] { fl::read_bpe_vocabulary(folder.path()); }).says(fl::errc::data, "vocab.bpe", "No such file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(error_of([&] { fl::read_bpe_vocabulary(folder / "pipe"); }).says(fl::errc::data, "is a pipe or a device"));
  for (const char* text :
       {"", "{", "[1, 2]", "3", "{\"a\": 0", "\xFF\xFE", "{\"a\": 0, \"a\": 1}", "{\"model\": 3}", "{}"})
    CHECK(error_of([&] {
            fl::read_bpe_vocabulary(folder.write("bad.json", text));
          }).says(fl::errc::data, "vocabulary '", "bad.json'"));
  CHECK(error_of([&] { fl::read_bpe_vocabulary(folder.write("deep.json", std::string(2000000, '['))); }).code
        == fl::errc::data);
}

TEST_CASE("lines of merges that are no merges name themselves") {
  temporary_folder folder;
  folder.write("encoder.json", tokens_json(three()));
  const auto merges = [&](const std::string& text) {
    folder.write("vocab.bpe", text);
    return error_of([&] { fl::read_bpe_vocabulary(folder.path()); });
  };
  CHECK(merges("#version: 0.2\na b\n").code == fl::errc::ok);
  CHECK(merges("").code == fl::errc::ok);
  CHECK(merges("a b").code == fl::errc::ok);
  CHECK(merges("#version: 0.2\na b\n\n").code == fl::errc::ok);
  for (const char* line : {"ab", "a b c", " b", "a ", "a  b", ""})
    CHECK(merges("#version: 0.2\na b\n" + std::string(line) + "\nab c\n")
              .says(fl::errc::data, "line 3 of", "two tokens with a space"));
  CHECK(merges("#version: 0.2\na b\nx y\n")
            .says(fl::errc::data, "line 3 joins 'x' and 'y'", "whose join is no token", "one vocabulary"));
  CHECK(merges("a b\nqq b\n").says(fl::errc::data, "line 2", "the first of which is no token"));
  CHECK(merges("a b\nab c\na b\n").says(fl::errc::data, "line 3", "as one before it does"));
}

TEST_CASE("merges that are cut off leave tokens that none makes") {
  temporary_folder folder;
  auto s = tiny_source({});
  for (int i = 0; i < 100; ++i) {
    const std::string a(1, char('a' + i % 10)), b(1, char('A' + i / 10));
    s.tokens.emplace_back(a + b, 257 + i);
    s.merges.emplace_back(a, b);
  }
  folder.write("encoder.json", tokens_json(s));
  const auto with = [&](std::size_t n) {
    auto cut = s;
    cut.merges.resize(n);
    folder.write("vocab.bpe", merges_text(cut));
    return error_of([&] { fl::read_bpe_vocabulary(folder.path()); });
  };
  CHECK(with(100).code == fl::errc::ok);
  CHECK(with(36).code == fl::errc::ok);
  CHECK(with(35).says(fl::errc::data, "vocab.bpe", "none of its 35 merges makes 65 of the 357 tokens", "is cut off"));
}

TEST_CASE("ids are 0 to the count, each once") {
  auto s = three();
  s.tokens[10].second = 260;
  CHECK(refused(s).says(fl::errc::data, "tiny.json", "has id 260", "expected 0 to 259"));
  s.tokens[10].second = -1;
  CHECK(refused(s).says(fl::errc::data, "has id -1"));
  s.tokens[10].second = 11;
  CHECK(refused(s).says(fl::errc::data, "has id 11", "another token"));
  s.tokens[10].second = INT64_MAX;
  CHECK(refused(s).says(fl::errc::data, "expected 0 to 259"));
  s = three();
  s.tokens.push_back(s.tokens[0]);
  CHECK(refused(s).says(fl::errc::data, "comes twice"));
  temporary_folder folder;
  folder.write("vocab.bpe", "");
  for (const char* id : {"1.5", "\"3\"", "null", "[1]", "18446744073709551615", "1e30"})
    CHECK(error_of([&] {
            folder.write("encoder.json", "{\"a\": " + std::string(id) + "}");
            fl::read_bpe_vocabulary(folder.path());
          }).code
          == fl::errc::data);
}

TEST_CASE("all bytes are needed, in symbols") {
  auto s = three();
  s.tokens.erase(s.tokens.begin() + 'q');
  for (auto& [text, id] : s.tokens) id -= id > 'q';
  for (auto& [text, id] : s.special) --id;
  CHECK(refused(s).says(fl::errc::data, "no token 'q' for byte 113", "all 256"));
  fl::bpe_source few;
  few.tokens = {{"a", 0}};
  CHECK(refused(few).says(fl::errc::data, "it has 1 tokens", "expected 256"));
  s = three();
  s.tokens[256].first = "a b";
  CHECK(refused(s).says(fl::errc::data, "not written in byte symbols"));
  s.tokens[256].first = "";
  CHECK(refused(s).says(fl::errc::data, "is empty"));
}

TEST_CASE("special tokens have one id and are no merges") {
  auto s = three();
  s.special[0].second = 4;
  CHECK(refused(s).says(fl::errc::data, "special token '<|endoftext|>' has id 4 and id 259"));
  s = three();
  s.special.emplace_back("", 260);
  CHECK(refused(s).says(fl::errc::data, "special token 260 is empty"));
  s = three();
  s.special.emplace_back("ab", 256);
  CHECK(refused(s).says(fl::errc::data, "joins 'a' and 'b'", "whose join is no token"));
  s = three();
  for (fl::i64 i = 0; i < 5000; ++i) s.special.emplace_back("<" + std::to_string(i) + ">", 260 + i);
  CHECK(refused(s).says(fl::errc::data, "special tokens, expected 4096 at most"));
}

TEST_CASE("a tokenizer.json that is not as GPT-2's says where") {
  temporary_folder folder;
  const auto s = three();
  const auto with = [&](const std::string& more) {
    return error_of([&] { fl::read_bpe_vocabulary(folder.write("t.json", tokenizer_json(s, more))); });
  };
  const std::string good =
      "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}";
  CHECK(with(good + ", \"normalizer\": null").code == fl::errc::ok);
  CHECK(with(good + ", \"normalizer\": {\"type\": \"NFC\"}").says(fl::errc::data, "normalizer", "t.json"));
  CHECK(with("\"pre_tokenizer\": null").says(fl::errc::data, "pre_tokenizer", "ByteLevel"));
  CHECK(with("\"pre_tokenizer\": {\"type\": \"Metaspace\"}").says(fl::errc::data, "pre_tokenizer", "ByteLevel"));
  CHECK(with("\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true}")
            .says(fl::errc::data, "add_prefix_space", "expected false"));
  CHECK(with("\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"use_regex\": false}")
            .says(fl::errc::data, "use_regex", "expected true"));
  auto text = tokenizer_json(s);
  const auto change = [&](const std::string& from, const std::string& to) {
    auto t = text;
    t.replace(t.find(from), from.size(), to);
    return error_of([&] { fl::read_bpe_vocabulary(folder.write("t.json", t)); });
  };
  CHECK(change("\"BPE\"", "\"Unigram\"").says(fl::errc::data, "model.type", "Unigram", "BPE"));
  CHECK(change("\"BPE\"", "\"BPE\", \"byte_fallback\": true").says(fl::errc::data, "model.byte_fallback"));
  CHECK(change("\"BPE\"", "\"BPE\", \"dropout\": 0.1").says(fl::errc::data, "model.dropout"));
  CHECK(change("\"special\": true", "\"special\": false").says(fl::errc::data, "added_tokens[0]", "not special"));
  CHECK(change("\"merges\"", "\"merge\"").says(fl::errc::data, "no key \"merges\""));
  CHECK(change("\"a b\"", "\"ab\"").says(fl::errc::data, "model.merges[0]", "two tokens"));
  CHECK(change("\"a b\"", "[\"a\"]").says(fl::errc::data, "model.merges[0]", "two tokens"));
  CHECK(change("\"a b\"", "\"x y\"").says(fl::errc::data, "merge 1 joins 'x' and 'y'"));
}
