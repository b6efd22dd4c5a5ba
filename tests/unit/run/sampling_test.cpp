// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/sampling.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {
std::vector<int> hits_of(const std::vector<double>& logits, const fl::draw_settings& s, int draws) {
  std::vector<int> hits(logits.size());
  for (int i = 0; i < draws; ++i) ++hits[std::size_t(fl::draw_token(logits, s, (i + 0.5) / draws))];
  return hits;
}
}  // namespace

TEST_CASE("draws follow the softmax, of the likeliest where it is cut") {
  const std::vector<double> logits{0, std::log(2.0), std::log(5.0), -1e9};
  CHECK(hits_of(logits, {}, 8000) == std::vector<int>{1000, 2000, 5000, 0});
  CHECK(hits_of(logits, {.top_k = 2}, 700) == std::vector<int>{0, 200, 500, 0});
  CHECK(hits_of(logits, {.top_p = 0.8}, 700) == std::vector<int>{0, 200, 500, 0});
  CHECK(hits_of(logits, {.top_p = 0.6}, 700) == std::vector<int>{0, 0, 700, 0});
  CHECK(hits_of(logits, {.top_p = 0}, 10) == std::vector<int>{0, 0, 10, 0});
  CHECK(hits_of(logits, {.top_k = 1, .top_p = 0.99}, 10) == std::vector<int>{0, 0, 10, 0});
  CHECK(hits_of({1, 1, 1}, {.top_k = 2}, 10) == std::vector<int>{5, 5, 0});  // of equals the lower ones
}

TEST_CASE("temperature 0 takes the likeliest, of equals the lowest; extremes stay in range") {
  const std::vector<double> logits{1, 3, 3, 2};
  CHECK(fl::draw_token(logits, {.temperature = 0}, 0.99) == 1);
  CHECK(fl::draw_token(logits, {.top_k = 1}, 0.99) == 1);
  for (double t : {1e-12, 1.0, 100.0})
    for (double chance : {0.0, 0.5, 1 - 1e-16}) {
      const fl::i64 x = fl::draw_token(logits, {.temperature = t}, chance);
      CHECK((x >= 0 && x < 4));
    }
}

TEST_CASE("a text ends before its stop, wherever that is cut") {
  const std::string text = "one two ththe end, not more";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    fl::text_until t("the end");
    std::string shown;
    for (std::size_t i = 0; i < text.size() && !t.ended(); i += step) shown += t.add(text.substr(i, step));
    CHECK(t.ended());
    CHECK(shown + t.finish() == "one two th");
  }
  fl::text_until never("");
  CHECK(never.add("all") == "all");
  fl::text_until part("end");
  CHECK(part.add("some en") == "some ");
  CHECK(part.finish() == "en");
  CHECK(!part.ended());
}
