// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/hello.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;
using fusionllm_test::named;

TEST_CASE("a hello comes back as it was") {
  fl::hello h = named("a").self;
  h.rank = 3;
  h.announce = "127.0.0.1:5";
  h.frame_cap = 1000;
  const fl::hello back = fl::decode_hello(fl::encode(h));
  CHECK(back.run == h.run);
  CHECK(back.token == h.token);
  CHECK(back.fingerprint == h.fingerprint);
  CHECK(back.config == h.config);
  CHECK(back.role == h.role);
  CHECK(back.name == h.name);
  CHECK(back.rank == 3);
  CHECK(back.announce == h.announce);
  CHECK(back.library == h.library);
  CHECK(back.frame_cap == 1000);
}

TEST_CASE("every cut of a hello is an error") {
  const auto bytes = fl::encode(named("a").self);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    CHECK_THROWS_AS(fl::decode_hello(fl::const_byte_span(bytes).first(n)), fl::error);
}

TEST_CASE("the first difference is named, and no secret") {
  const fl::hello mine = named("a").self;
  auto with = [&](auto change) {
    fl::hello theirs = named("b").self;
    change(theirs);
    return fl::difference(mine, theirs).value_or("none");
  };
  CHECK(with([](fl::hello&) {}) == "none");
  CHECK(contains(with([](fl::hello& h) { h.run = "run-2"; }), "run id is 'run-2' at 'b' and 'run-1' at 'a'"));
  for (const char* token : {"", "secret-tokem", "secret-token2"}) {
    const std::string text = with([&](fl::hello& h) { h.token = token, h.config[0].value = "9"; });
    CHECK(contains(text, "token"));
    CHECK_FALSE(contains(text, "secret"));
    CHECK_FALSE(contains(text, "learning_rate"));
  }
  CHECK(contains(with([](fl::hello& h) { h.fingerprint = 98; }), "fingerprint is 98 at 'b' and 99 at 'a'"));
  CHECK(with([](fl::hello& h) { h.fingerprint = 0; }) == "none");
  CHECK(contains(with([](fl::hello& h) { h.config[0].value = "0.002"; }),
                 "configuration key 'learning_rate' is '0.002' at 'b' and '0.001' at 'a'"));
  CHECK(contains(with([](fl::hello& h) { h.config.pop_back(); }), "'seed' is '7' at 'a' and missing at 'b'"));
  CHECK(contains(with([](fl::hello& h) { h.config.push_back({"extra", "1"}); }),
                 "'extra' is '1' at 'b' and missing at 'a'"));
  CHECK(with([](fl::hello& h) { h.config.push_back({"data?", "x"}); }) == "none");
  CHECK(with([](fl::hello& h) { std::swap(h.config[0], h.config[1]); }) == "none");
}

TEST_CASE("text from outside is made harmless") {
  fl::hello h = named("a\x1b[2J\n").self;
  CHECK(fl::decode_hello(fl::encode(h)).name == "a\\x1b[2J\\x0a");
  CHECK(fl::printable(std::string(500, 'x')).size() == 203);
}

TEST_CASE("a configuration that does not fit is an error of the configuration") {
  fl::hello h = named("a").self;
  h.config.push_back({"big", std::string(70000, 'x')});
  CHECK_THROWS_AS(fl::encode(h), fl::error);
}

TEST_CASE("secrets are equal or not") {
  CHECK(fl::equal_secrets("", ""));
  CHECK(fl::equal_secrets("abc", "abc"));
  CHECK_FALSE(fl::equal_secrets("abc", "abd"));
  CHECK_FALSE(fl::equal_secrets("abc", "ab"));
  CHECK_FALSE(fl::equal_secrets("", std::string(1, '\0')));
}
