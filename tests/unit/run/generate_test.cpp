// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/generate.hpp>

#include <fusionllm/device/reference.hpp>
#include <fusionllm/trainer/trainer.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {
struct next {  // the logits after token t are row t of the table
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    return fl::cross_entropy(fl::output("logits", fl::embedding(tokens, fl::parameter<4, 4>(g, "table"))), targets);
  }
};
}  // namespace

TEST_CASE("logits that nothing can be drawn by are an error with their token, and those of tokens that never come are none") {
  fl::trainer<next, fl::reference<double>> t({.batch = 1, .time = 8});
  double* table = t.parameter("table").as<double>();
  const auto after = [&](std::initializer_list<double> row, std::vector<std::int32_t> tokens) {
    std::copy(row.begin(), row.end(), table + 4);
    return fl::detail::next_token_logits(t, {fl::output_node(t.graph(), "logits"), fl::inference_kind::whole, {1, 8}, 1}).after(tokens);
  };
  constexpr double never = -INFINITY;
  CHECK(after({0, never, 3, never}, {0, 1}) == std::vector<double>{0, never, 3, never});
  CHECK(error_of([&] { after({0, 1, NAN, 3}, {0, 2, 1}); }).says(fl::errc::numeric, "token 2 is no number", "after 3 tokens", "--checkpoint"));
  CHECK(error_of([&] { after({0, 1, 2, INFINITY}, {1}); }).says(fl::errc::numeric, "token 3 is infinite"));
  CHECK(error_of([&] { after({never, never, never, never}, {1}); }).says(fl::errc::numeric, "all tokens"));
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
