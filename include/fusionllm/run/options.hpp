// SPDX-License-Identifier: Apache-2.0
// What a command is told beside the configuration of a run. `section` in this table lists the commands that know a key.
#pragma once

#include "../trainer/config.hpp"

namespace fusionllm::inline v0 {

struct command_options {
  std::string config{};
  bool json = false;
  bool quiet = false;
  bool answer = false;
  std::string listen{};
  std::string output{};
  std::string checkpoint{};
  std::string weights{};
  std::string dtype = "fp32";
  bool partial = false;
  std::string output_name = "logits";
  bool special = false;
  std::string format = "text";
  std::string prompt = "\n";
  i64 length = 200;
  double temperature = 0.8;
  i64 top_k = 0;
  double top_p = 1;
  std::string stop{};
};
using option_field = basic_config_field<command_options>;

namespace detail {

constexpr auto make_option_fields() {
  using o = command_options;
  constexpr auto local = config_scope::local;
  constexpr field_maker<o> all{"train|local|broker|peer|plan|simulate|graph|tokenize|generate|evaluate|predict|import|export", local};
  constexpr field_maker<o> broker{"broker|generate|evaluate|predict", local}, joining{"peer", local}, running{"train|local|broker|peer", local}, plan{"plan|tokenize|export", local}, graph{"graph", local};
  constexpr field_maker<o> loading{"generate|evaluate|predict|export", local}, generate{"generate", local}, tokens{"tokenize|generate", local};
  constexpr field_maker<o> predict{"predict", local}, import_{"import", local}, export_{"export", local};
  return std::array{
      all.text("config", &o::config, "JSON file with keys of the sections below; flags win"),
      all.flag("json", &o::json, "print the result as JSON"),
      running.flag("quiet", &o::quiet, "no progress"),
      broker.text("listen", &o::listen, "address to wait at for peers; empty: broker takes that of the key broker, other commands start peers here"),
      joining.flag("answer", &o::answer, "join generate, evaluate or predict instead of a run: no data is opened"),
      plan.text("output", &o::output, "the file to write"),
      graph.text("format", &o::format, "of what is printed", "text|dot"),
      tokens.flag("special", &o::special, "texts of special tokens, such as <|endoftext|>, are those tokens"),
      loading.text("checkpoint", &o::checkpoint, "file; empty: the newest of the run folder"),
      predict.text("output_name", &o::output_name, "of the model's outputs"),
      import_.text("weights", &o::weights, "safetensors file, index of shards, or a folder with one"),
      import_.flag("partial", &o::partial, "take what there is: what is missing starts anew, what is left over is not used"),
      export_.text("dtype", &o::dtype, "of what is written", "fp32|fp16|bf16|fp64"),
      generate.text("prompt", &o::prompt, "what the text begins with"),
      generate.integer("length", &o::length, 1, 1'000'000, "tokens to add"),
      generate.real("temperature", &o::temperature, 0, 100, "of the softmax; 0: the likeliest token"),
      generate.integer("top_k", &o::top_k, 0, 1 << 24, "draw among so many likeliest tokens; 0: all"),
      generate.real("top_p", &o::top_p, 0, 1, "draw among the fewest likeliest tokens that hold this probability"),
      generate.text("stop", &o::stop, "the text ends before these words"),
  };
}

}  // namespace detail

inline constexpr auto option_fields = detail::make_option_fields();

}  // namespace fusionllm::inline v0
