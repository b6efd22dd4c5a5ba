// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/token_data.hpp>

#include <fusionllm/trainer/token_writer.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

std::string write(const temporary_folder& folder, fl::i64 count, fl::i64 vocabulary) {
  fl::token_writer w(folder / "tokens", vocabulary, 0);
  for (fl::i64 i = 0; i < count; ++i) w.add(fl::u32(i * 7919 % vocabulary));
  w.finish();
  return folder / "tokens";
}

template <class Data>
std::vector<std::int32_t> fill(const Data& d, fl::u64 step, fl::i64 rows, fl::i64 time, bool held_out = false) {
  std::vector<std::int32_t> all(std::size_t(2 * rows * time));
  const std::span tokens(all.data(), all.size() / 2), targets(all.data() + all.size() / 2, all.size() / 2);
  const fl::output_span inputs[] = {{"tokens", tokens, {rows, time}}, {"targets", targets, {rows, time}}};
  if (held_out)
    d.fill_validation(fl::i64(step), 0, rows, inputs);
  else
    d.fill(step, 0, rows, inputs);
  return all;
}

}  // namespace

TEST_CASE("a token file that is too short says what it holds and what is needed") {
  temporary_folder folder;
  for (fl::i64 n : {0, 1, 7, 8})
    CHECK(error_of([&] {
            fl::token_data d(fl::mapped_token_file(write(folder, n, 1000)), {.time = 8});
          }).says(fl::errc::data, "holds " + std::to_string(n) + " tokens", "expected 9 or more (time + 1)"));
  const fl::token_data d(fl::mapped_token_file(write(folder, 9, 1000)), {.time = 8, .rows = 2});
  CHECK(d.order().samples() == 1);
  const auto r = fill(d, 3, 2, 8);
  for (std::size_t t = 0; t < 8; ++t) {
    CHECK(r[t] == std::int32_t(t * 7919 % 1000));
    CHECK(r[16 + t] == std::int32_t((t + 1) * 7919 % 1000));
  }
}

TEST_CASE("samples are those of the same integers in a raw file") {
  temporary_folder folder;
  for (fl::i64 vocabulary : {1000, 70000}) {
    const fl::mapped_token_file file(write(folder, 5000, vocabulary));
    std::string raw;
    for (fl::i64 i = 0; i < file.count(); ++i)
      for (std::size_t b = 0; b < std::size_t(file.format()); ++b) raw += char(file[i] >> (8 * b));
    const fl::text_options o{.time = 16, .rows = 4, .seed = 5, .stride = 3};
    const fl::token_data d(fl::mapped_token_file(folder / "tokens"), o);
    const fl::text_data e(fl::token_file(folder.write("raw", raw), file.format(), vocabulary), o);
    CHECK(d.train_tokens() == 4500);
    REQUIRE(d.validation_batches() == e.validation_batches());
    for (fl::u64 step : {0u, 1u, 400u, 100000u}) CHECK(fill(d, step, 4, 16) == fill(e, step, 4, 16));
    for (fl::u64 b = 0; b < fl::u64(d.validation_batches()); ++b)
      CHECK(fill(d, b, 4, 16, true) == fill(e, b, 4, 16, true));
    CHECK(d.describe() == folder / "tokens" + ": 4500 tokens to train on, 500 held out");
  }
}
