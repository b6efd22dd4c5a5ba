// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/pattern.hpp>

#include <string>
#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

// All ways to share `text` among the stars, the first star's shortest first.
bool fits_plainly(std::string_view pattern, std::string_view text, std::vector<std::string>& stars) {
  if (pattern.empty()) return text.empty();
  const char c = pattern[0];
  if (c != '*') return !text.empty() && (c == '?' || c == text[0]) && fits_plainly(pattern.substr(1), text.substr(1), stars);
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::size_t before = stars.size();
    stars.emplace_back(text.substr(0, n));
    if (fits_plainly(pattern.substr(1), text.substr(n), stars)) return true;
    stars.resize(before);
  }
  return false;
}

// Every text of up to `longest` of these letters.
std::vector<std::string> texts(std::string_view letters, std::size_t longest) {
  std::vector<std::string> all{""};
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].size() < longest)
      for (char c : letters) all.push_back(std::string(all[i]) + c);
  return all;
}

}  // namespace

static_assert(fl::fits_pattern("h.*.attn.bias", "h.11.attn.bias"));
static_assert(!fl::fits_pattern("h.*.attn.bias", "h.11.attn.c_attn.bias.0"));

TEST_CASE("patterns fit whole names") {
  CHECK(fl::fits_pattern("*", ""));
  CHECK(fl::fits_pattern("", ""));
  CHECK_FALSE(fl::fits_pattern("", "a"));
  CHECK(fl::fits_pattern("h.*.bias", "h.11.mlp.c_fc.bias"));
  CHECK_FALSE(fl::fits_pattern("h.*.bias", "h.11.mlp.c_fc.biases"));
  CHECK(fl::fits_pattern("h.?.ln_*", "h.3.ln_1.weight"));
  CHECK_FALSE(fl::fits_pattern("h.?.ln_*", "h.10.ln_1.weight"));
  CHECK_FALSE(fl::fits_pattern("wte", "wte.weight"));
  CHECK(fl::fits_pattern("*.bias", ".bias"));
}

TEST_CASE("stars hold what they stand for, as far as there is room") {
  std::string_view stars[2];
  REQUIRE(fl::fits_pattern("h.*.attn.*", "h.3.attn.c_proj.weight", stars));
  CHECK(stars[0] == "3");
  CHECK(stars[1] == "c_proj.weight");
  REQUIRE(fl::fits_pattern("*a*b*", "xxaxxbxxab", stars));
  CHECK(stars[0] == "xx");
  CHECK(stars[1] == "xx");
}

TEST_CASE("every pattern and text of a few letters is decided as by trying all ways") {
  for (const auto& pattern : texts("ab*?", 4))
    for (const auto& text : texts("ab", 5)) {
      std::string_view found[4];
      std::vector<std::string> expected;
      const bool fits = fits_plainly(pattern, text, expected);
      if (fl::fits_pattern(pattern, text, found) != fits) FAIL(pattern << " and '" << text << "'");
      for (std::size_t i = 0; fits && i < expected.size(); ++i)
        if (found[i] != expected[i]) FAIL(pattern << " and '" << text << "': star " << i << " is '" << found[i] << "'");
    }
}

TEST_CASE("a pattern of many stars takes no exponential time") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK_FALSE(fl::fits_pattern(pattern + "b", std::string(4000, 'a')));
}
