// SPDX-License-Identifier: Apache-2.0
// What a command is told beside the configuration of a run. `section` in this table lists the commands that know a key.
#pragma once

#include "../trainer/config.hpp"

namespace fusionllm::inline v0 {

struct command_options {
  std::string config{};
  bool json = false;
  bool quiet = false;
  std::string listen{};
  std::string output{};
  std::string checkpoint{};
  bool special = false;
  std::string format = "text";
  std::string prompt = "\n";
  i64 length = 200;
  double temperature = 0.8;
  i64 top = 0;
};
using option_field = basic_config_field<command_options>;

namespace detail {

constexpr auto make_option_fields() {
  using o = command_options;
  constexpr auto local = config_scope::local;
  constexpr field_maker<o> all{"train|local|broker|peer|plan|simulate|graph|tokenize|generate|evaluate", local};
  constexpr field_maker<o> broker{"broker", local}, running{"train|local|broker|peer", local}, plan{"plan|tokenize", local}, graph{"graph", local};
  constexpr field_maker<o> loading{"generate|evaluate", local}, generate{"generate", local}, tokens{"tokenize|generate", local};
  return std::array{
      all.text("config", &o::config, "JSON file with any of the keys below; flags win"),
      all.flag("json", &o::json, "print the result as JSON"),
      running.flag("quiet", &o::quiet, "no progress"),
      broker.text("listen", &o::listen, "address to listen on; empty: that of the key broker"),
      plan.text("output", &o::output, "the file to write"),
      graph.text("format", &o::format, "of what is printed", "text|dot"),
      tokens.flag("special", &o::special, "texts of special tokens, such as <|endoftext|>, are those tokens"),
      loading.text("checkpoint", &o::checkpoint, "file; empty: the newest of the run folder"),
      generate.text("prompt", &o::prompt, "what the text begins with"),
      generate.integer("length", &o::length, 1, 1'000'000, "tokens to add"),
      generate.real("temperature", &o::temperature, 0, 100, "of the softmax; 0: the likeliest token"),
      generate.integer("top", &o::top, 0, 1 << 24, "draw among so many likeliest tokens; 0: all"),
  };
}

}  // namespace detail

inline constexpr auto option_fields = detail::make_option_fields();

}  // namespace fusionllm::inline v0
