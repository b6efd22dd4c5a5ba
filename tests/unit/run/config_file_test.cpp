// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/config_file.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::caught;
using fusionllm_test::error_of;

namespace {
caught refused(const std::string& text) {
  return error_of([&] {
    fl::run_config c;
    fl::apply_json(text, "run.json", c);
  });
}
}  // namespace

TEST_CASE("a file sets the keys that it has") {
  fl::run_config c;
  c.steps = 7;
  fl::apply_json(R"({"batch": 8, "learning_rate": 1, "data": "x.txt", "resume": true})", "run.json", c);
  CHECK(c.batch == 8);
  CHECK(c.learning_rate == 1);
  CHECK(c.data == "x.txt");
  CHECK(c.resume);
  CHECK(c.steps == 7);
  CHECK_NOTHROW(fl::apply_json("{}", "run.json", c));
}

TEST_CASE("the resolved configuration reads back to itself") {
  fl::run_config a, b;
  a.learning_rate = 0.1 + 0.2, a.name = "a\"\\\n\xC3\xA9", a.seed = INT64_MAX, a.emulate = true;
  fl::apply_json(fl::to_json(a), "config.json", b);
  CHECK(fl::to_json(a) == fl::to_json(b));
  CHECK(a.learning_rate == b.learning_rate);
}

TEST_CASE("what is wrong is named by file and key") {
  CHECK(refused("").says(fl::errc::config, "run.json is not JSON"));
  CHECK(refused("{\"batch\": 8").says(fl::errc::config, "run.json is not JSON"));
  CHECK(refused("[]").says(fl::errc::config, "run.json", "expected a JSON object"));
  CHECK(refused("8").says(fl::errc::config, "expected a JSON object"));
  CHECK(refused(R"({"larning_rate": 1})").says(fl::errc::config, "run.json", "'larning_rate'", "did you mean 'learning_rate'?"));
  CHECK(refused(R"({"Q\n": 1})").says(fl::errc::config, "'Q\\x0a'", "--help"));
  CHECK(refused(R"({"batch": 8, "batch": 9})").says(fl::errc::config, "batch", "twice"));
  CHECK(refused(R"({"batch": "8"})").says(fl::errc::config, "batch is \"8\"", "a whole number"));
  CHECK(refused(R"({"batch": 8.5})").says(fl::errc::config, "batch is 8.5", "a whole number"));
  CHECK(refused(R"({"batch": null})").says(fl::errc::config, "batch is null"));
  CHECK(refused(R"({"batch": 0})").says(fl::errc::config, "run.json: batch is 0", "expected 1 to"));
  CHECK(refused(R"({"seed": 18446744073709551615})").says(fl::errc::config, "seed is 18446744073709551615"));
  CHECK(refused(R"({"learning_rate": "fast"})").says(fl::errc::config, "learning_rate", "a number"));
  CHECK(refused(R"({"learning_rate": 1e999})").code == fl::errc::config);
  CHECK(refused(R"({"data": 5})").says(fl::errc::config, "data is 5", "a text"));
  CHECK(refused(R"({"resume": 1})").says(fl::errc::config, "resume is 1", "true or false"));
  CHECK(refused(R"({"optimizer": "adam"})").says(fl::errc::config, "adamw|sgd"));
  CHECK(refused(R"({"batch": {"x": [1, 2]}})").says(fl::errc::config, "batch is {"));
}

TEST_CASE("files") {
  fusionllm_test::temporary_folder folder;
  fl::run_config c;
  fl::apply_config_file(folder.write("run.json", R"({"batch": 3})"), c);
  CHECK(c.batch == 3);
  CHECK(error_of([&] { fl::apply_config_file(folder / "none.json", c); }).says(fl::errc::config, "none.json", "No such file"));
  CHECK(error_of([&] { fl::apply_config_file(folder.path(), c); }).says(fl::errc::config, "is a directory"));
}
