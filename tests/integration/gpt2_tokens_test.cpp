// SPDX-License-Identifier: Apache-2.0
// GPT-2's own vocabulary, where a set-up script has laid it: ids are tiktoken's on hostile text and on all of
// Shakespeare.
#include <fusionllm/trainer/bpe.hpp>

#include "reference/token_ids.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

const std::string data = environment("FUSIONLLM_DATA", environment("HOME", "/root") + "/.cache/fusionllm");

const fl::bpe_tokenizer& gpt2() {
  struct stat info{};
  if (::stat((data + "/gpt2").c_str(), &info) != 0) skip_program(data + "/gpt2 is not there: GPT-2's vocabulary");
  static const fl::bpe_tokenizer t(data + "/gpt2");
  return t;
}

}  // namespace

TEST_CASE("GPT-2: a page of hostile text") {
  const auto expected = reference_ids("gpt2");
  const auto found = gpt2().encode(page_of_hostile_text());
  CHECK(gpt2().vocabulary() == 50257);
  CHECK(std::vector<unsigned long long>(found.begin(), found.end()) == expected);
}

// tiktoken joins any two tokens whose bytes are a token, GPT-2's rule only those that a merge names. No vocabulary of
// which this holds lets the two differ.
TEST_CASE("GPT-2: every token is its own encoding") {
  int others = 0;
  fl::detail::bpe_merger merge(gpt2().tokens(), false);
  for (fl::i64 id = 0; id < 50256; ++id) {
    const auto ids = merge(gpt2().bytes(id));
    others += !(ids.size() == 1 && ids[0] == fl::u32(id));
  }
  CHECK(others == 0);
}

TEST_CASE("GPT-2: all of Shakespeare") {
  struct stat info{};
  if (::stat((data + "/shakespeare.txt").c_str(), &info) != 0) return;
  const fl::mapped_file text(data + "/shakespeare.txt", fl::errc::data, "text");
  const auto expected = reference_ids("gpt2_shakespeare");
  fl::u64 count = 0, sum = 0;
  std::string back;
  gpt2().encode(text.text(), fl::special_text::ordinary, [&](fl::u32 id) {
    sum += ++count * id;
    back += gpt2().bytes(id);
  });
  CHECK(count == expected[0]);
  CHECK(sum == expected[1]);
  CHECK(back == text.text());
}
