// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/bigram.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::temporary_folder;

TEST_CASE("a table counted by hand") {
  fl::bigram_table t(2);
  t.count(0, 1);
  t.count(0, 1);
  t.count(0, 0);
  CHECK(t.nats(0, 1) == Approx(-std::log(3.0 / 5)));
  CHECK(t.nats(0, 0) == Approx(-std::log(2.0 / 5)));
  CHECK(t.nats(1, 0) == Approx(std::log(2.0)));  // never seen: all are equal
}

TEST_CASE("text that alternates costs little, and nothing held out is no number") {
  temporary_folder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "ab";
  CHECK(fl::bigram_loss(fl::text_data(fl::token_file(folder.write("ab", text)), {.time = 8})) < 0.06);
  CHECK(std::isnan(fl::bigram_loss(fl::text_data(fl::token_file(folder.write("a", "aaaa")), {.time = 3}))));
}

TEST_CASE("a vocabulary whose square is too large is refused") {
  CHECK(fusionllm_test::error_of([] { fl::bigram_table(5000); }).says(fl::errc::config, "5000", "1 to 4096"));
}

TEST_CASE("Shakespeare's plays: 2.47 nats a byte") {
  const std::string data = fusionllm_test::environment("FUSIONLLM_DATA");
  if (data.empty() || !std::filesystem::exists(data + "/shakespeare.txt")) {
    WARN("not checked: $FUSIONLLM_DATA/shakespeare.txt is absent");
    return;
  }
  const fl::text_data d(fl::token_file(data + "/shakespeare.txt"), {});
  CHECK(fl::bigram_loss(d) == Approx(2.47).margin(0.04));
}
