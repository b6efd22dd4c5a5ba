// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/token_text.hpp>

#include "catch.hpp"
#include "unit/bpe_tiny.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

std::vector<std::int32_t> ordinary(const fl::token_text& t, std::string_view prompt) {
  return t.tokens(prompt, fl::special_text::ordinary);
}
using ids = std::vector<std::int32_t>;

fl::run_config with(const char* format, std::string tokenizer = "") {
  fl::run_config c;
  c.token_format = format;
  c.tokenizer = std::move(tokenizer);
  return c;
}

}  // namespace

TEST_CASE("without a tokenizer tokens are bytes or numbers") {
  fl::token_text bytes(with("bytes"), 256), numbers(with("uint16"), 5000);
  CHECK(ordinary(bytes, "a\xFF") == ids{97, 255});
  CHECK(bytes.add(ids{97, 255}) == "a\xFF");
  CHECK(bytes.finish().empty());
  CHECK(ordinary(numbers, "12 4999") == ids{12, 4999});
  CHECK(numbers.add(ids{12, 7}) == "12 7");
  CHECK(numbers.add(ids{4999}) == " 4999");
  CHECK(error_of([] { fl::token_text t(with("bytes"), 50257); }).says(fl::errc::config, "50257 tokens", "--tokenizer"));
}

TEST_CASE("with a tokenizer tokens are its text, shown a character at a time") {
  temporary_folder folder;
  const auto s = tiny_source({{"a", "b"}, {"\xC3", "\xA9"}, {"\xE2", "\x82"}});
  folder.write("encoder.json", tokens_json(s));
  folder.write("vocab.bpe", merges_text(s));
  fl::token_text t(with("bytes", folder.path()), 300);
  CHECK(ordinary(t, "ab\u00E9") == ids{256, 257});
  CHECK(t.tokens("<|endoftext|>", fl::special_text::token) == ids{259});
  CHECK(ordinary(t, "<|endoftext|>").size() == 13);
  CHECK(t.add(ids{256, 258}) == "ab");
  CHECK(t.add(ids{299}).empty());  // of the model, not of the tokenizer
  CHECK(t.add(ids{0xAC}) == "\u20AC");
  CHECK(t.add(ids{258}).empty());
  CHECK(t.finish() == "\xE2\x82");
  CHECK(error_of([&] { ordinary(t, ""); }).says(fl::errc::usage, "the prompt is empty"));
  CHECK(error_of([&] {
          fl::token_text few(with("bytes", folder.path()), 259);
        }).says(fl::errc::data, "has 260 tokens, the model knows 259"));
  CHECK(error_of([&] {
          fl::token_text none(with("bytes", folder / "absent"), 300);
        }).says(fl::errc::data, "No such file"));
}
