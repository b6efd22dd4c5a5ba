// SPDX-License-Identifier: Apache-2.0
// The texts of --help and --version, made from the tables of commands and keys.
#pragma once

#include "../core/version.hpp"
#include "command_line.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Two columns: a flag and what it is for.
inline void add_line(std::string& text, std::string left, std::string_view right) {
  constexpr std::size_t column = 32;
  left = "  " + left;
  if (left.size() + 1 < column) left.resize(column, ' ');
  else left += "\n" + std::string(column, ' ');
  (text += left) += right;
  text += '\n';
}

template <class Owner>
void add_flag(std::string& text, const basic_config_field<Owner>& f, const Owner& defaults) {
  std::string left = flag_of(f.key);
  if (f.integer) left += " N";
  else if (f.real) left += " X";
  else if (f.text) left += f.choices.empty() ? std::string(" TEXT") : " " + std::string(f.choices);
  std::string right(f.help);
  const std::string value = field_text(f, defaults);
  if (!f.flag && !value.empty() && f.scope != config_scope::secret && value != "\n") right += " (" + value + ")";
  if (f.flag && defaults.*f.flag) right += " (true)";
  add_line(text, left, right);
}

}  // namespace detail

inline std::string version_text() {
  return "fusionllm " + std::to_string(version_major) + '.' + std::to_string(version_minor) + '.'
         + std::to_string(version_patch) + ", wire version " + std::to_string(wire_version) + "\n";
}

/// Help for all commands.
inline std::string help_text(std::string_view program) {
  std::string text = "usage: " + std::string(program) + " COMMAND [--key value ...]\n\ncommands:\n";
  for (const auto& c : commands) detail::add_line(text, std::string(c.name), c.summary);
  text += "\n" + std::string(program) + " COMMAND --help lists the keys of a command, --version prints the version.\n"
          "The exit status of an error is its number in docs/errors.md.\n";
  return text;
}

/// Help for one command. Values in parentheses are the defaults of this program.
inline std::string help_text(std::string_view program, const command_info& c, const run_config& defaults) {
  std::string text = "usage: " + std::string(program) + ' ' + std::string(c.name) + " [--key value ...]\n\n"
                     + std::string(c.summary) + "\n\n";
  for (const auto& f : option_fields)
    if (detail::has_choice(f.section, c.name)) detail::add_flag(text, f, command_options{});
  std::string_view section;
  for (const auto& f : config_fields) {
    if (!detail::has_choice(c.sections, f.section)) continue;
    if (f.section != section) text += "\n" + std::string(section = f.section) + ":\n";
    detail::add_flag(text, f, defaults);
  }
  return text;
}

}  // namespace fusionllm::inline v0
