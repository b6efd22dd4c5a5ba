// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/json_lines.hpp>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;

TEST_CASE("one whole object a line, appended to those of the run before") {
  fusionllm_test::temporary_folder folder;
  {
    fl::json_lines first(folder / "metrics.jsonl");
    fl::event_sinks all;
    all.add(first);
    const fl::link_usage links[] = {{"a", "b", "ada_top_k", 1000, 100, 0.5}};
    fl::step_event e;
    e.step = 1, e.loss = std::nan(""), e.tokens = 50, e.seconds = 0.5, e.predicted_seconds = 0.4, e.links = links;
    all.on_step(e);
    e.skipped = true, e.reason = "a \"spike\"";
    all.on_step(e);
    all.on_checkpoint({2, "x\ny", 10, 0.1});
  }
  fl::json_lines(folder / "metrics.jsonl").on_message({fl::severity::warning, "again"});
  fl::json_lines(folder / "metrics.jsonl").on_validation({3, 1.5, 8, 0.25});
  std::istringstream lines(folder.read("metrics.jsonl"));
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  REQUIRE(all.size() == 5);
  CHECK(all[0]["skipped"] == false);
  CHECK(!all[0].contains("reason"));
  CHECK(all[1]["skipped"] == true);
  CHECK(all[1]["reason"] == "a \"spike\"");
  all.erase(all.begin() + 1);
  CHECK(all[0]["loss"].is_null());
  CHECK(all[0]["tokens_per_second"] == 100);
  CHECK(all[0]["links"][0]["sent_bytes"] == 100);
  CHECK(all[1]["path"] == "x\ny");
  CHECK(all[2]["event"] == "warning");
  CHECK(all[3]["loss"] == 1.5);
}

TEST_CASE("what cannot be written says so") {
  using fusionllm_test::error_of;
  CHECK(error_of([] { fl::json_lines("/nowhere/metrics.jsonl"); }).says(fl::errc::resource, "/nowhere", "run folder"));
  CHECK(error_of([] { fl::json_lines("/dev/full").on_message({}); }).says(fl::errc::resource, "/dev/full"));
}
