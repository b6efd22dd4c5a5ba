// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/generate.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

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
