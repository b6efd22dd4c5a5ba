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

inline token_format token_format_of(const run_config& c) {
  return c.token_format == "uint16" ? token_format::uint16 : c.token_format == "uint32" ? token_format::uint32 : token_format::bytes;
}

/// The number of tokens that the model's embedding knows; 0: it has none.
inline i64 vocabulary_of(const graph_view& g) {
  for (const node& n : g.nodes)
    if (n.op->name == "embedding" && n.params[0] >= 0) return g.params[std::size_t(n.params[0])].dims.d[0];
  return 0;
}

/// Errors: errc::config when no data is named; those of the source.
inline std::unique_ptr<data_source> open_data(const command_call& call) {
  if (call.program.make_data) return call.program.make_data(call.config);
  const run_config& c = call.config;
  if (c.data.empty()) fail(errc::config, "data is empty: name a file of text or tokens with --data");
  const i64 vocabulary = vocabulary_of(call.model.graph);
  token_file file(c.data, token_format_of(c), vocabulary > 0 ? vocabulary : i64(1) << 31);
  return std::make_unique<text_data>(std::move(file), text_options{.time = c.time, .rows = c.batch, .seed = u64(c.seed), .stride = c.stride});
}

}  // namespace fusionllm::inline v0
