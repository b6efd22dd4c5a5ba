// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/summary.hpp>

#include <nlohmann/json.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("links add up, the median leaves out the first step") {
  fl::run_summary s;
  CHECK(s.table().empty());
  CHECK(nlohmann::json::parse(s.json())["loss"].is_null());
  for (int i = 0; i < 4; ++i) {
    const fl::link_usage links[] = {{"a", "b", "top", 1000, 100, 0.5}, {"b", "a", "none", 10, 10, 0.25}};
    fl::step_event e;
    e.step = fl::u64(i + 1), e.loss = 4 - i, e.seconds = i == 0 ? 9 : i, e.predicted_seconds = 2.2, e.tokens = 5, e.links = links;
    s.on_step(e);
  }
  s.on_validation({4, 1.25, 8, 0.1});
  CHECK(s.median_step() == 2);
  REQUIRE(s.links().size() == 2);
  CHECK(s.links()[0].raw_bytes == 4000);
  CHECK(s.table().find("loss 4.0000 to 1.0000, median step 2000.0 ms (predicted 2200.0 ms, +10.0 %)") != std::string::npos);
  CHECK(s.table().find("10.00") != std::string::npos);
  const auto j = nlohmann::json::parse(s.json());
  CHECK(j["links"][0]["sent_bytes"] == 400);
  CHECK(j["validation_loss"] == 1.25);
  CHECK(j["tokens"] == 20);
}
