// SPDX-License-Identifier: Apache-2.0
// The command line: PROGRAM COMMAND --key value ... Keys are those of the tables of the configuration and of the
// commands, so that a flag, a key of a JSON file and a line of --help cannot differ. Flags win over the file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "../trainer/config_text.hpp"
#include "options.hpp"

namespace fusionllm::inline v0 {

struct command_info {
  std::string_view name;
  std::string_view summary;
  std::string_view sections;  ///< of the configuration, for --help
  bool trained = false;       ///< it uses a trained model as its run folder says
};

inline constexpr command_info commands[] = {
    {"train", "train in this process", "training|data|this peer|run folder"},
    {"local", "train over several processes of this machine", "training|data|plan|compression|this peer|run folder|network"},
    {"broker", "bring the peers of a run together and plan it", "training|data|plan|compression|run folder|network"},
    {"peer", "join a run", "training|data|plan|compression|this peer|run folder|network"},
    {"plan", "decide which device runs what, for the machines of a topology", "training|plan|compression"},
    {"simulate", "predict the time of a step of every scheduler", "training|plan|compression"},
    {"graph", "print the operators of the model", "training"},
    {"tokenize", "make a token file of a text", "data"},
    {"generate", "continue a prompt with a trained model", "data|plan|this peer|run folder|network", true},
    {"evaluate", "loss of a trained model on held-out data", "data|plan|this peer|run folder|network", true},
    {"predict", "what a trained model says of held-out samples, a JSON line each", "data|plan|this peer|run folder|network", true},
    {"import", "make a run folder from weights in safetensors files", "training|data|this peer|run folder"},
    {"export", "write the weights of a trained model as a safetensors file", "run folder", true},
};

/// A parsed command line. `command` is null where only help or the version is asked for.
struct command_line {
  const command_info* command = nullptr;
  bool help = false;
  bool version = false;
  struct setting {
    std::string key, value;
  };
  std::vector<setting> settings;  ///< of the configuration, in order
  command_options options;
};

namespace detail {

inline std::span<const config_field> config_table() { return config_fields; }
inline std::span<const option_field> option_table() { return option_fields; }

template <class F>
void as_usage(std::string_view flag, F&& f) {
  try {
    f();
  } catch (const error& e) {
    fail(errc::usage, flag, ": ", e.what());
  }
}

class command_line_parser {
 public:
  explicit command_line_parser(std::span<const char* const> arguments) : left_(arguments) {}

  command_line parse() {
    if (left_.empty()) fail(errc::usage, "no command: give one of ", names(), ", or --help");
    while (!left_.empty()) {
      const std::string_view word = next();
      if (word == "--help" || word == "-h") result_.help = true;
      else if (word == "--version") result_.version = true;
      else if (word.substr(0, 2) == "--" && word.size() > 2) flag(word);
      else if (!result_.command) find_command(word);
      else fail(errc::usage, "'", printable(word), "' is no flag: flags begin with --, values follow their flag");
    }
    if (!result_.command && !result_.help && !result_.version) fail(errc::usage, "no command: give one of ", names());
    return std::move(result_);
  }

 private:
  std::string_view next() {
    const char* word = left_.front();
    left_ = left_.subspan(1);
    return word;
  }
  /// "broker, peer" of "broker|peer".
  static std::string in_words(std::string_view choices) {
    std::string all;
    for (char c : choices) all += c == '|' ? std::string(", ") : std::string(1, c);
    return all;
  }
  static std::string names() {
    std::string all;
    for (const auto& c : commands) all += (all.empty() ? "" : ", ") + std::string(c.name);
    return all;
  }

  void find_command(std::string_view word) {
    nearest_name near(word);
    for (const auto& c : commands) {
      if (c.name == word) result_.command = &c;
      near.offer(c.name);
    }
    if (result_.command) return;
    const std::string hint = near.text();
    fail(errc::usage, "'", printable(word), "' is no command", hint.empty() ? ": give one of " + names() : hint);
  }

  void flag(std::string_view word) {
    const auto equals = word.find('=');
    const std::string_view shown = word.substr(0, equals);
    std::string_view key = shown.substr(2);
    if (!result_.command) fail(errc::usage, "'", printable(shown), "' comes before the command: write PROGRAM COMMAND --key value");
    const config_field* c = find_field(config_table(), key);
    const option_field* o = find_field(option_table(), key);
    bool off = false;
    if (!c && !o && key.substr(0, 3) == "no-") {
      c = find_field(config_table(), key.substr(3));
      o = find_field(option_table(), key.substr(3));
      off = (c && c->flag) || (o && o->flag);
      if (!off) c = nullptr, o = nullptr;
    }
    if (!c && !o) unknown(shown, key);
    if (o && !has_choice(o->section, result_.command->name))
      fail(errc::usage, shown, " is a flag of ", in_words(o->section), ", not of ", result_.command->name);
    const bool is_switch = c ? c->flag != nullptr : o->flag != nullptr;
    std::string_view value = "true";
    if (equals != std::string_view::npos) value = word.substr(equals + 1);
    else if (off) value = "false";
    else if (!is_switch && left_.empty()) fail(errc::usage, shown, " is the last word: a value is expected after it");
    else if (!is_switch) value = next();
    as_usage(shown, [&] {
      run_config checked;
      if (c) set_field(*c, checked, value), result_.settings.push_back({std::string(c->key), std::string(value)});
      else set_field(*o, result_.options, value);
    });
  }

  [[noreturn]] void unknown(std::string_view shown, std::string_view key) {
    std::string spelt(key);
    for (char& ch : spelt) ch = ch == '-' ? '_' : ch;
    nearest_name near(spelt);
    for (const auto& f : config_fields) near.offer(f.key);
    for (const auto& f : option_fields)
      if (has_choice(f.section, result_.command->name)) near.offer(f.key);
    fail(errc::usage, printable(shown), " is no flag of ", result_.command->name,
         near.name().empty() ? ": --help lists them" : ": did you mean " + flag_of(near.name()) + "?");
  }

  std::span<const char* const> left_;
  command_line result_;
};

}  // namespace detail

/// Parses the words after the program's name. Errors: errc::usage.
inline command_line parse_command_line(std::span<const char* const> arguments) {
  return detail::command_line_parser(arguments).parse();
}

/// The configuration that a command line, a file's settings and defaults give together. Errors: errc::usage.
inline void apply(const command_line& line, run_config& c) {
  for (const auto& s : line.settings)
    detail::as_usage(detail::flag_of(s.key), [&] { set_field(*detail::find_field(detail::config_table(), s.key), c, s.value); });
}

}  // namespace fusionllm::inline v0
