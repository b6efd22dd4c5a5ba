// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/run_folder.hpp>

#include <fusionllm/run/config_file.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

fl::run_config config_of(const std::string& folder) {
  fl::run_config c;
  c.run = folder;
  c.batch = 7;
  c.learning_rate = 0.1;
  c.token = "a secret";
  return c;
}
// A run of three steps, as far as its folder shows.
fl::run_folder begun(const std::string& path) {
  const fl::run_folder f(path);
  f.open(config_of(path), 99);
  f.begin(config_of(path), 99);
  std::ofstream(f.checkpoints().file_of(3)) << "weights";
  std::ofstream(f.metrics_file()) << "{}\n";
  return f;
}
bool there(const std::string& path) { return std::filesystem::exists(path); }

}  // namespace

TEST_CASE("a new run's folder is made, with all above it, and holds the configuration without secrets") {
  const temporary_folder folder;
  const std::string path = folder / "deep/er/run";
  const fl::run_folder f(path);
  f.open(config_of(path), 99);
  CHECK_FALSE(f.holds_run());
  CHECK_FALSE(there(f.config_file()));  // nothing is written before all is well
  f.begin(config_of(path), 99);
  fl::run_config read;
  fl::apply_config_file(f.config_file(), read);
  CHECK(read.batch == 7);
  CHECK(read.learning_rate == 0.1);
  CHECK(read.token.empty());
  CHECK(folder.read("deep/er/run/config.json").find("secret") == std::string::npos);
  CHECK(folder.read("deep/er/run/lasting.json").find("\"batch\"") != std::string::npos);
  CHECK_FALSE(f.holds_run());
  CHECK(error_of([&] { fl::run_folder(folder.write("file", "") + "/run").open(config_of(""), 0); })
            .says(fl::errc::resource, "cannot make run folder", "--run"));
}

TEST_CASE("a folder that holds a run is kept from another one, unless that may remove it") {
  const temporary_folder folder;
  const std::string path = folder / "run";
  const auto f = begun(path);
  REQUIRE(f.holds_run());
  auto c = config_of(path);
  CHECK(error_of([&] { f.open(c, 99); }).says(fl::errc::config, path, "--resume", "--overwrite"));
  CHECK(error_of([&] { f.open_for_import(c); }).says(fl::errc::config, path, "--overwrite"));
  c.overwrite = true;
  c.batch = 9;
  f.open(c, 99);
  CHECK(f.holds_run());  // what can still go wrong must not cost the old run
  f.begin(c, 99);
  CHECK_FALSE(f.holds_run());
  CHECK_FALSE(there(f.metrics_file()));
  CHECK(folder.read("run/config.json").find("\"batch\": 9") != std::string::npos);
}

TEST_CASE("a run stays when the one that is to overwrite it cannot be written down") {
  const temporary_folder folder;
  const auto f = begun(folder / "run");
  auto c = config_of(folder / "run");
  c.overwrite = true;
  std::filesystem::remove(f.config_file());
  std::filesystem::create_directory(f.config_file());
  CHECK(error_of([&] { f.begin(c, 99); }).says(fl::errc::resource, "config.json"));
  CHECK(error_of([&] { f.begin_import(c); }).says(fl::errc::resource, "config.json"));
  CHECK((f.holds_run() && there(f.metrics_file()) && there(folder / "run/lasting.json")));
}

TEST_CASE("a resumed run has the same, or the first key that differs is named with both values") {
  const temporary_folder folder;
  const auto f = begun(folder / "run");
  auto c = config_of(folder / "run");
  c.resume = true;
  f.open(c, 99);
  c.threads = 2;  // each process's own
  c.stop_after = 5;
  f.open(c, 99);
  f.begin(c, 99);
  CHECK(f.holds_run());
  CHECK(there(f.metrics_file()));
  CHECK(error_of([&] { f.open(c, 98); }).says(fl::errc::config, "data digest", "'99'", "'98'"));
  c.learning_rate = 0.25;
  CHECK(error_of([&] { f.open(c, 99); }).says(fl::errc::config, "learning_rate = '0.1'", "'0.25'", "resume with the same"));
  folder.write("run/lasting.json", "{\"learning_rate\": ");
  CHECK(error_of([&] { f.open(c, 99); }).says(fl::errc::config, "lasting.json"));
  std::filesystem::remove(folder / "run/lasting.json");
  f.open(c, 99);  // an imported one: it decides now
  f.begin(c, 99);
  CHECK(folder.read("run/lasting.json").find("0.25") != std::string::npos);
}

TEST_CASE("an import replaces a run when its checkpoint is there, and leaves what must last to the run that goes on") {
  const temporary_folder folder;
  const auto f = begun(folder / "run");
  auto c = config_of(folder / "run");
  c.overwrite = true;
  f.open_for_import(c);
  CHECK((f.holds_run() && there(f.metrics_file()) && there(folder / "run/lasting.json")));
  std::ofstream(f.checkpoints().file_of(0)) << "imported weights";
  f.begin_import(c);
  CHECK(f.checkpoints().steps() == std::vector<fl::u64>{0});
  CHECK_FALSE(there(f.metrics_file()));
  CHECK_FALSE(there(folder / "run/lasting.json"));
  CHECK(there(f.config_file()));
}

TEST_CASE("one process at a time writes into a folder") {
  const temporary_folder folder;
  const fl::run_folder f(folder / "run");
  {
    const auto lock = f.lock();
    CHECK(lock.get() >= 0);
    CHECK(error_of([&] { f.lock(); }).says(fl::errc::config, folder / "run", "another process"));
  }
  CHECK(f.lock().get() >= 0);
}

TEST_CASE("a text is written whole, into devices too, or is an error with the path") {
  const temporary_folder folder;
  folder.write("text", "what was there before, and longer");
  fl::detail::write_whole_file(folder / "text", "new");
  CHECK(folder.read("text") == "new");
  fl::detail::write_whole_file("/dev/null", "anything");
  CHECK(error_of([&] { fl::detail::write_whole_file("/dev/full", "anything"); }).says(fl::errc::resource, "'/dev/full'", "No space"));
  CHECK(error_of([&] { fl::detail::write_whole_file(folder / "absent/text", "new"); }).says(fl::errc::resource, "absent/text"));
  CHECK(error_of([&] { fl::detail::write_whole_file(folder.path(), "new"); }).says(fl::errc::resource, folder.path()));
}
