// SPDX-License-Identifier: Apache-2.0
// The data of a run: the program's own, a token file (known by its first bytes), or a file of text or integers.
#pragma once

#include "../trainer/bpe.hpp"
#include "../trainer/token_data.hpp"
#include "program.hpp"

namespace fusionllm::inline v0 {

inline token_format token_format_of(const run_config& c) {
  return c.token_format == "uint16"   ? token_format::uint16
         : c.token_format == "uint32" ? token_format::uint32
                                      : token_format::bytes;
}

/// The number of tokens that every operator of the model knows; 0: none reads tokens.
inline i64 vocabulary_of(const graph_view& g) {
  i64 least = 0;
  for (int i = 0; i < g.size(); ++i) {
    const operator_traits& op = *g.nodes[std::size_t(i)].op;
    if (op.places < 0) continue;
    const i64 n = op.place_count(g.view(i, {1, 1}));
    least = least ? (std::min)(least, n) : n;
  }
  return least;
}

/// The data of a token file. Errors: errc::data when the run's tokenizer is another than the one that made the file.
inline std::unique_ptr<data_source> open_token_data(const run_config& c, i64 vocabulary, const text_options& o) {
  mapped_token_file file(c.data, vocabulary);
  if (!c.tokenizer.empty() && bpe_tokenizer(c.tokenizer).identity() != file.info().tokenizer)
    fail(errc::data, "token file '", c.data, "' was made with another tokenizer than '", c.tokenizer,
         "': tokenize the text with this one, "
         "or name the other");
  return std::make_unique<token_data>(std::move(file), o);
}

/// Errors: errc::config when no data is named; those of the source.
inline std::unique_ptr<data_source> open_data(const command_call& call) {
  if (call.program.make_data) return call.program.make_data(call.config);
  const run_config& c = call.config;
  if (c.data.empty()) fail(errc::config, "data is empty: name a file of text or tokens with --data");
  const i64 vocabulary = vocabulary_of(call.model.graph);
  const i64 known = vocabulary > 0 ? vocabulary : i64(1) << 31;
  const text_options o{.time = c.time, .rows = c.batch, .seed = u64(c.seed), .stride = c.stride};
  if (is_token_file(c.data)) return open_token_data(c, known, o);
  if (!c.tokenizer.empty() && c.token_format == "bytes")
    fail(errc::data, "data file '", c.data,
         "' is text, and the run has a tokenizer: make tokens of it first, with `tokenize --data ", c.data,
         " --tokenizer ", c.tokenizer, " --output FILE`");
  token_file file(c.data, token_format_of(c), known);
  return std::make_unique<text_data>(std::move(file), o);
}

/// For who may do without: null where none is named, unless the program's own needs no name. Errors: as `open_data`, for
/// data that is named.
inline std::unique_ptr<data_source> open_data_if_named(const command_call& call) {
  if (!call.config.data.empty()) return open_data(call);
  if (!call.program.make_data) return nullptr;
  try {
    return open_data(call);
  } catch (const error& e) {
    if (e.code() != errc::data && e.code() != errc::config) throw;
    return nullptr;  // who needs it after all is told then
  }
}

}  // namespace fusionllm::inline v0
