// SPDX-License-Identifier: Apache-2.0
// Ids are tiktoken's on a page of hostile text, with a small vocabulary in both forms of file. The same with GPT-2's
// own vocabulary is in integration/gpt2_tokens_test.cpp.
#include <fusionllm/trainer/bpe.hpp>

#include "reference/token_ids.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

void check_equal(const std::vector<fl::u32>& found, const std::vector<unsigned long long>& expected) {
  CHECK(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size() && i < expected.size(); ++i)
    if (found[i] != expected[i]) FAIL("token " << i << " is " << found[i] << ", expected " << expected[i]);
}

}  // namespace

TEST_CASE("a page of hostile text has tiktoken's ids") {
  const std::string page = page_of_hostile_text();
  REQUIRE(page.size() > 9000);
  const fl::bpe_tokenizer pair(tokens_folder() + "small"), one(tokens_folder() + "small/tokenizer.json");
  CHECK(pair.vocabulary() == 1200);
  CHECK(pair.identity() == one.identity());
  for (const auto& t : {pair, one}) {
    check_equal(t.encode(page), reference_ids("small"));
    check_equal(t.encode(page, fl::special_text::token), reference_ids("small_special"));
    CHECK(t.decode(t.encode(page)) == page);
  }
}

TEST_CASE("words that come again have the same tokens") {
  const fl::bpe_tokenizer t(tokens_folder() + "small");
  const std::string page = page_of_hostile_text();
  std::string many;
  while (many.size() < (1 << 17)) many += page + " ";
  std::vector<fl::u32> parts;
  for (std::size_t at = 0; at < many.size();) {
    const std::size_t n = fl::first_piece(std::string_view(many).substr(at));
    for (fl::u32 id : t.encode(many.substr(at, n))) parts.push_back(id);
    at += n;
  }
  CHECK(t.encode(many) == parts);
}
