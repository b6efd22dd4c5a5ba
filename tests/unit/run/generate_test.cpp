// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/generate.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

TEST_CASE("draws follow the softmax") {
  const std::vector<double> logits{0, std::log(2.0), std::log(5.0), -1e9};
  std::vector<int> hits(4);
  for (int i = 0; i < 8000; ++i) ++hits[std::size_t(fl::draw_token(logits, 1, 0, (i + 0.5) / 8000))];
  CHECK(hits == std::vector<int>{1000, 2000, 5000, 0});
  std::fill(hits.begin(), hits.end(), 0);
  for (int i = 0; i < 700; ++i) ++hits[std::size_t(fl::draw_token(logits, 1, 2, (i + 0.5) / 700))];
  CHECK(hits == std::vector<int>{0, 200, 500, 0});
}

TEST_CASE("temperature 0 takes the likeliest, of equals the lowest; extremes stay in range") {
  const std::vector<double> logits{1, 3, 3, 2};
  CHECK(fl::draw_token(logits, 0, 0, 0.99) == 1);
  CHECK(fl::draw_token(logits, 1, 1, 0.99) == 1);
  for (double t : {1e-12, 1.0, 100.0})
    for (double chance : {0.0, 0.5, 1 - 1e-16}) {
      const fl::i64 x = fl::draw_token(logits, t, 0, chance);
      CHECK((x >= 0 && x < 4));
    }
}

TEST_CASE("prompts as bytes and as numbers") {
  using fl::detail::tokens_of;
  CHECK(tokens_of("a\xFF", true, 256) == std::vector<std::int32_t>{97, 255});
  CHECK(tokens_of("3 14,15", false, 100) == std::vector<std::int32_t>{3, 14, 15});
  CHECK(error_of([] { tokens_of("", true, 256); }).says(fl::errc::usage, "empty"));
  CHECK(error_of([] { tokens_of("3 x", false, 100); }).says(fl::errc::config, "'x'", "token numbers"));
  CHECK(error_of([] { tokens_of("3 100", false, 100); }).says(fl::errc::data, "token 1 of the prompt is 100", "0 to 99"));
  CHECK(error_of([] { tokens_of("~", true, 61); }).says(fl::errc::data, "is 126"));
  const std::vector<std::int32_t> t{72, 105};
  CHECK(fl::detail::text_of(t, true) == "Hi");
  CHECK(fl::detail::text_of(t, false) == "72 105");
}
