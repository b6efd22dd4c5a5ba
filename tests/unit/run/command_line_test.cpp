// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/command_line.hpp>

#include <fusionllm/run/usage.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::caught;
using fusionllm_test::error_of;

namespace {

fl::command_line parse(std::initializer_list<const char*> words) {
  return fl::parse_command_line(std::span(words.begin(), words.size()));
}
fl::run_config config(std::initializer_list<const char*> words) {
  fl::run_config c;
  fl::apply(parse(words), c);
  return c;
}
caught refused(std::initializer_list<const char*> words) {
  return error_of([&] { config(words); });
}

}  // namespace

TEST_CASE("flags in every form") {
  const auto c = config({"train", "--batch", "8", "--learning-rate=0.5", "--min_learning_rate", "1e-9", "--resume", "--data=a=b"});
  CHECK(c.batch == 8);
  CHECK(c.learning_rate == 0.5);
  CHECK(c.min_learning_rate == 1e-9);
  CHECK(c.resume);
  CHECK(c.data == "a=b");
  CHECK_FALSE(config({"train", "--resume", "--no-resume"}).resume);
  CHECK_FALSE(config({"train", "--resume=false"}).resume);
  CHECK(config({"train", "--batch", "8", "--batch", "9"}).batch == 9);
  CHECK(config({"train", "--data", ""}).data.empty());
  CHECK(config({"train", "--data", "--odd name"}).data == "--odd name");
}

TEST_CASE("commands and their own options") {
  CHECK(parse({"graph", "--format", "dot"}).options.format == "dot");
  CHECK(parse({"generate", "--prompt", "To be", "--temperature", "0"}).options.prompt == "To be");
  CHECK(parse({"plan", "--output", "p.json", "--json"}).options.json);
  CHECK(parse({"--help"}).help);
  CHECK(parse({"train", "-h"}).help);
  CHECK(parse({"--version"}).version);
  CHECK(refused({"train", "--special"}).says(fl::errc::usage, "--special is a flag of tokenize, generate, not of train"));
  CHECK(refused({"train", "--prompt", "x"}).says(fl::errc::usage, "--prompt is a flag of generate, not of train"));
}

TEST_CASE("what is wrong is named, with the nearest that is right") {
  CHECK(refused({}).says(fl::errc::usage, "no command", "train, local"));
  CHECK(refused({"trian"}).says(fl::errc::usage, "'trian' is no command", "did you mean 'train'?"));
  CHECK(refused({"frobnicate"}).says(fl::errc::usage, "'frobnicate'", "give one of"));
  CHECK(refused({"--batch", "8", "train"}).says(fl::errc::usage, "'--batch' comes before the command"));
  CHECK(refused({"train", "--larning-rate", "1"}).says(fl::errc::usage, "--larning-rate", "did you mean --learning-rate?"));
  CHECK(refused({"train", "--dta", "x"}).says(fl::errc::usage, "--dta is no flag of train: did you mean --data?"));
  CHECK(refused({"generate", "--top_"}).says(fl::errc::usage, "did you mean --top-k?"));
  CHECK(refused({"train", "--qwertyuiop"}).says(fl::errc::usage, "--qwertyuiop is no flag of train", "--help"));
  CHECK(refused({"train", "--batch"}).says(fl::errc::usage, "--batch is the last word"));
  CHECK(refused({"train", "--batch", "many"}).says(fl::errc::usage, "--batch: batch is 'many'", "a whole number"));
  CHECK(refused({"train", "--batch", "0"}).says(fl::errc::usage, "batch is 0", "expected 1 to"));
  CHECK(refused({"train", "--resume=perhaps"}).says(fl::errc::usage, "true or false"));
  CHECK(refused({"train", "--no-batch"}).code == fl::errc::usage);
  CHECK(refused({"train", "extra"}).says(fl::errc::usage, "'extra' is no flag"));
  CHECK(refused({"train", "--"}).code == fl::errc::usage);
  CHECK(refused({"train", "\x1b[31m"}).says(fl::errc::usage, "\\x1b[31m"));
}

TEST_CASE("help names every key of a command once, and its default") {
  fl::run_config c;
  c.batch = 77;
  for (const auto& command : fl::commands) {
    const std::string text = fl::help_text("gpt", command, c);
    CHECK(text.find(command.summary) != std::string::npos);
    for (const auto& f : fl::config_fields) {
      std::string flag = "  --";
      for (char ch : f.key) flag += ch == '_' ? '-' : ch;
      const bool listed = text.find(flag + ' ') != std::string::npos || text.find(flag + '\n') != std::string::npos;
      INFO(command.name << ' ' << flag);
      CHECK(listed == fl::detail::has_choice(command.sections, f.section));
    }
  }
  CHECK(fl::help_text("gpt", fl::commands[0], c).find("(77)") != std::string::npos);
  CHECK(fl::help_text("gpt").find("local") != std::string::npos);
  CHECK(fl::version_text().find("wire version") != std::string::npos);
}
