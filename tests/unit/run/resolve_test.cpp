// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/resolve.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {
fl::run_config resolve(std::initializer_list<const char*> words, const fl::run_config& defaults = {}) {
  return fl::detail::resolve(fl::parse_command_line(std::span(words.begin(), words.size())), defaults);
}
}  // namespace

TEST_CASE("of several who say a key the last one counts") {
  const fusionllm_test::temporary_folder folder;
  const std::string file = folder.write("c.json", "{\"batch\": 8, \"time\": 9}");
  const auto c = resolve({"train", "--time", "10", "--config", file.c_str()}, {.steps = 7, .batch = 32});
  CHECK((c.steps == 7 && c.batch == 8 && c.time == 10 && c.peers == 1));
}

TEST_CASE("a trained model is judged on all that is held out, whatever its run was judged on, unless the user says otherwise") {
  const fusionllm_test::temporary_folder folder;
  folder.write("config.json", fl::to_json(fl::run_config{.time = 33, .validation_batches = 3}));
  const std::string run = folder.path(), file = folder.write("c.json", "{\"validation_batches\": 5}");
  const fl::run_config defaults{.validation_batches = 4};
  for (const char* command : {"evaluate", "predict"}) {
    CHECK(resolve({command, "--run", run.c_str()}, defaults).time == 33);
    CHECK(resolve({command, "--run", run.c_str()}, defaults).validation_batches == 0);
    CHECK(resolve({command, "--checkpoint", "x"}, defaults).validation_batches == 0);
    CHECK(resolve({command, "--run", run.c_str(), "--config", file.c_str()}, defaults).validation_batches == 5);
    CHECK(resolve({command, "--run", run.c_str(), "--validation-batches", "2"}, defaults).validation_batches == 2);
  }
  CHECK(resolve({"train"}, defaults).validation_batches == 4);
}

TEST_CASE("runs over peers refuse to be asked for held-out losses on the way, but not a program's default") {
  const fusionllm_test::temporary_folder folder;
  const std::string file = folder.write("c.json", "{\"validation_interval\": 5}");
  const fl::run_config defaults{.validation_interval = 6};
  for (const char* command : {"local", "broker"}) {
    CHECK(error_of([&] { resolve({command, "--validation-interval", "5"}); }).says(fl::errc::config, "is 5", "--validation-interval", "train"));
    CHECK(error_of([&] { resolve({command, "--config", file.c_str()}); }).says(fl::errc::config, "is 5"));
    CHECK(resolve({command}, defaults).validation_interval == 6);
    CHECK(resolve({command, "--config", file.c_str(), "--validation-interval", "0"}, defaults).validation_interval == 0);
  }
  for (const char* command : {"train", "peer"}) CHECK(resolve({command, "--config", file.c_str()}, defaults).validation_interval == 5);
}
