// SPDX-License-Identifier: Apache-2.0
// What every command is given, and what a program may change: its defaults and where its data comes from.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>

#include "../cluster/binding.hpp"
#include "../trainer/text_data.hpp"
#include "command_line.hpp"

namespace fusionllm::inline v0 {

struct program_options {
  run_config defaults{};  ///< of all keys; a file and flags change them
  /// Makes the data of a run; empty: the text or tokens of the key `data`.
  std::function<std::unique_ptr<data_source>(const run_config&)> make_data{};
};

/// One of the models of a program, which the key `model` chooses from.
struct named_model {
  std::string_view name;
  const model_binding& (*binding)();
};

/// A command about to run.
struct command_call {
  const model_binding& model;
  run_config config;
  command_options options;
  const program_options& program;
  const char* path = "";      ///< of this program
  std::FILE* out = stdout;    ///< results
  std::FILE* notes = stderr;  ///< what is said beside results when those are JSON
};

}  // namespace fusionllm::inline v0
