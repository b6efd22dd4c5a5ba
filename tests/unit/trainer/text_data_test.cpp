// SPDX-License-Identifier: Apache-2.0
// Case C25: every kind of data file that is not what a run needs, and the smallest that is.
#include <fusionllm/trainer/text_data.hpp>

#include <sys/stat.h>

#include <array>
#include <set>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

std::string letters(std::size_t n) {
  std::string s;
  for (std::size_t i = 0; i < n; ++i) s += char('a' + i % 26);
  return s;
}

fl::text_data open_text(const std::string& path, fl::i64 time, fl::i64 rows = 1) {
  return fl::text_data(fl::token_file(path), {.time = time, .rows = rows});
}

struct rows_of_tokens {
  std::vector<std::int32_t> tokens, targets;
};

rows_of_tokens fill(const fl::text_data& d, fl::u64 step, fl::i64 begin, fl::i64 end, fl::i64 time, bool held_out = false) {
  const auto n = std::size_t((end - begin) * time);
  rows_of_tokens r{std::vector<std::int32_t>(n), std::vector<std::int32_t>(n)};
  const fl::output_span inputs[] = {{"tokens", std::span(r.tokens), {end - begin, time}},
                                    {"targets", std::span(r.targets), {end - begin, time}}};
  if (held_out) d.fill_validation(fl::i64(step), begin, end, inputs);
  else d.fill(step, begin, end, inputs);
  return r;
}

std::string integers(std::initializer_list<fl::u64> values, std::size_t size) {
  std::string s;
  for (fl::u64 v : values)
    for (std::size_t i = 0; i < size; ++i) s += char(v >> (8 * i));
  return s;
}

}  // namespace

TEST_CASE("a file that is too short says what it holds and what is needed") {
  temporary_folder folder;
  for (std::size_t n : {0u, 1u, 7u, 8u}) {
    const auto path = folder.write("short.txt", letters(n));
    const auto e = error_of([&] { open_text(path, 8); });
    INFO(n << ": " << e.text);
    CHECK(e.says(fl::errc::data, path, "holds " + std::to_string(n) + " tokens", "expected 9 or more (time + 1)"));
  }
}

TEST_CASE("time + 1 tokens train one sequence") {
  temporary_folder folder;
  const auto d = open_text(folder.write("one.txt", "abcdefghi"), 8, 2);
  CHECK(d.order().samples() == 1);
  CHECK(d.validation_batches() == 0);
  for (fl::u64 step : {0u, 1u, 1000000u}) {
    const auto r = fill(d, step, 0, 2, 8);
    for (int row = 0; row < 2; ++row)
      for (int t = 0; t < 8; ++t) {
        CHECK(r.tokens[std::size_t(8 * row + t)] == 'a' + t);
        CHECK(r.targets[std::size_t(8 * row + t)] == 'b' + t);
      }
  }
  CHECK(error_of([&] { fill(d, 0, 0, 1, 8, true); }).says(fl::errc::data, "which has 0"));
}

TEST_CASE("what is not a readable file is named") {
  temporary_folder folder;
  CHECK(error_of([&] { fl::token_file(folder / "absent.txt"); }).says(fl::errc::data, folder / "absent.txt", "No such file"));
  CHECK(error_of([&] { fl::token_file(folder.path()); }).says(fl::errc::data, folder.path(), "is a directory"));
  CHECK(error_of([&] { fl::token_file(""); }).says(fl::errc::data, "cannot open data file ''"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(error_of([&] { fl::token_file(folder / "pipe"); }).says(fl::errc::data, "is a pipe or a device"));
  CHECK(error_of([&] { fl::token_file("/dev/null"); }).says(fl::errc::data, "is a pipe or a device"));
}

TEST_CASE("integers: cut off, beyond the vocabulary, exact") {
  temporary_folder folder;
  const auto odd = folder.write("odd.u16", letters(7));
  CHECK(error_of([&] { fl::token_file(odd, fl::token_format::uint16, 65536); })
            .says(fl::errc::data, "has 7 bytes", "multiple of 2", "uint16"));
  for (std::size_t cut : {1u, 2u, 3u})
    CHECK(error_of([&] { fl::token_file(folder.write("cut.u32", letters(8 + cut)), fl::token_format::uint32, 100); })
              .says(fl::errc::data, "multiple of 4"));
  const auto path = folder.write("big.u16", integers({5, 60, 61, 62, 0}, 2));
  CHECK(error_of([&] { fl::token_file(path, fl::token_format::uint16, 61); })
            .says(fl::errc::data, "token 2 of", path, "is 61", "(at byte 4)", "expected 0 to 60"));
  const fl::token_file f(path, fl::token_format::uint16, 63);
  REQUIRE(f.count() == 5);
  CHECK(f[3] == 62);
  const auto wide = folder.write("wide.u32", integers({1, 0x7FFFFFFF, 0x80000000}, 4));
  CHECK(error_of([&] { fl::token_file(wide, fl::token_format::uint32, fl::i64(1) << 40); })
            .says(fl::errc::data, "token 2 of", "above 2^31"));
  CHECK(error_of([&] { fl::token_file(wide, fl::token_format::uint32, 50000); }).says(fl::errc::data, "token 1 of"));
}

TEST_CASE("bytes beyond a small vocabulary name their position") {
  temporary_folder folder;
  const auto path = folder.write("text.txt", "\x01\x02\x03~\x04");
  CHECK(error_of([&] { fl::token_file(path, fl::token_format::bytes, 61); })
            .says(fl::errc::data, "token 3 of", "is 126", "(at byte 3)"));
  CHECK(fl::token_file(path, fl::token_format::bytes, 127).count() == 5);
}

TEST_CASE("text is kept byte for byte: carriage returns, byte order mark, zeros, high bytes") {
  temporary_folder folder;
  const std::string text("\xEF\xBB\xBF" "a\r\nb\0\xFF", 9);
  const fl::token_file f(folder.write("bom.txt", text));
  REQUIRE(f.count() == fl::i64(text.size()));
  for (std::size_t i = 0; i < text.size(); ++i) CHECK(f[fl::i64(i)] == static_cast<unsigned char>(text[i]));
}

TEST_CASE("one epoch shows every position once, rows do not depend on who asks") {
  temporary_folder folder;
  const fl::i64 time = 4, rows = 3;
  const auto d = open_text(folder.write("text.txt", letters(19)), time, rows);
  CHECK(d.train_tokens() == 19);  // a tenth does not hold a sample
  REQUIRE(d.order().samples() == 15);
  for (fl::u64 epoch = 0; epoch < 3; ++epoch) {
    std::set<std::int32_t> starts;
    for (fl::u64 step = epoch * 5; step < (epoch + 1) * 5; ++step) {
      const auto all = fill(d, step, 0, rows, time);
      const auto last = fill(d, step, rows - 1, rows, time);
      CHECK(std::equal(last.tokens.begin(), last.tokens.end(), all.tokens.end() - time));
      for (std::size_t r = 0; r < std::size_t(rows); ++r) starts.insert(all.tokens[r * std::size_t(time)]);
    }
    CHECK(starts.size() == 15);
  }
}

TEST_CASE("the held-out tenth is never trained on, and read in order") {
  temporary_folder folder;
  std::string text(100, 'x');
  for (std::size_t i = 90; i < 100; ++i) text[i] = char('0' + i - 90);
  const auto d = open_text(folder.write("text.txt", text), 4, 2);
  CHECK(d.train_tokens() == 90);
  CHECK(d.validation_samples() == 2);
  CHECK(d.validation_batches() == 1);
  for (fl::u64 step = 0; step < 200; ++step)
    for (auto t : fill(d, step, 0, 2, 4).targets) REQUIRE(t == 'x');
  const auto r = fill(d, 0, 0, 2, 4, true);
  CHECK(std::string(r.tokens.begin(), r.tokens.end()) == "01234567");
  CHECK(std::string(r.targets.begin(), r.targets.end()) == "12345678");
}

TEST_CASE("the last held-out batch says how many of its rows are no repetition") {
  temporary_folder folder;
  const auto path = folder.write("text.txt", letters(210));  // 21 held out: five samples of 4
  for (const auto& [rows, batches, last] : {std::array<fl::i64, 3>{1, 5, 1}, {2, 3, 1}, {4, 2, 1}, {5, 1, 5}, {8, 1, 5}}) {
    const auto d = open_text(path, 4, rows);
    REQUIRE(d.validation_batches() == batches);
    fl::i64 sum = 0;
    for (fl::i64 b = 0; b < batches; ++b) sum += d.validation_rows(b);
    CHECK(sum == 5);
    CHECK(d.validation_rows(batches - 1) == last);
    const auto r = fill(d, fl::u64(batches - 1), 0, rows, 4, true);
    CHECK(r.tokens[std::size_t(4 * (last - 1))] == 'a' + (189 + 16) % 26);
    if (last < rows) CHECK(r.tokens[std::size_t(4 * last)] == 'a' + 189 % 26);  // begins again
  }
}

TEST_CASE("a model's inputs that text does not have are named") {
  temporary_folder folder;
  const auto d = open_text(folder.write("text.txt", letters(40)), 4, 1);
  std::vector<std::int32_t> x(8);
  const fl::output_span image[] = {{"image", std::span(x), {1, 8}}};
  CHECK(error_of([&] { d.fill(0, 0, 1, image); }).says(fl::errc::model, "'image'", "'tokens' and 'targets'"));
  const fl::output_span shape[] = {{"tokens", std::span(x), {2, 4}}};
  CHECK(error_of([&] { d.fill(0, 0, 1, shape); }).says(fl::errc::model, "'tokens' is int32 (2, 4)", "int32 (1, 4)"));
  CHECK(error_of([&] { d.fill(0, 0, 2, shape); }).says(fl::errc::data, "rows 0 to 2 of a batch of 1"));
}

TEST_CASE("the digest is that of the content") {
  temporary_folder folder;
  const auto a = folder.write("a", "abcd"), b = folder.write("b", "abcd"), c = folder.write("c", "abce");
  CHECK(fl::token_file(a).digest() == fl::token_file(b).digest());
  CHECK(fl::token_file(a).digest() != fl::token_file(c).digest());
  CHECK(fl::token_file(a).digest() != fl::token_file(a, fl::token_format::uint16, 65536).digest());
}
