// SPDX-License-Identifier: Apache-2.0
// `tokenize`: turns a text of any length into a token file that training reads.
#pragma once

#include <chrono>

#include "../trainer/bpe.hpp"
#include "../trainer/json_text.hpp"
#include "../trainer/token_file.hpp"
#include "../trainer/token_writer.hpp"
#include "program.hpp"
#include "stop_signal.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline bool same_file(const std::string& a, const std::string& b) {
  struct stat x {
  }, y{};
  return ::stat(a.c_str(), &x) == 0 && ::stat(b.c_str(), &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

}  // namespace detail

/// Errors: errc::usage, errc::config for what is not named; errc::data for text and vocabulary; errc::resource for a
/// full disk; errc::interrupted. A file that is there stays as it is until the new one is whole.
inline int tokenize_command(const command_call& call) {
  const run_config& c = call.config;
  const std::string& output = call.options.output;
  if (c.data.empty()) fail(errc::config, "data is empty: name a file of text with --data");
  if (c.tokenizer.empty())
    fail(errc::config, "tokenizer is empty: name a tokenizer.json, or a folder with encoder.json and vocab.bpe");
  if (output.empty()) fail(errc::usage, "no output: name the token file to write with --output");
  if (detail::same_file(c.data, output))
    fail(errc::usage, "output '", output, "' is the text itself: name another file");
  const mapped_file text(c.data, errc::data, "data file");
  if (is_token_file(c.data))
    fail(errc::data, "data file '", c.data, "' is a token file already: name the text it was made of");
  text.read_in_order();
  const bpe_tokenizer tokenizer(c.tokenizer);
  token_writer writer(output, tokenizer.vocabulary(), tokenizer.identity());
  const stop_signal stop;
  const auto begin = std::chrono::steady_clock::now();
  tokenizer.encode(text.text(), call.options.special ? special_text::token : special_text::ordinary, [&](u32 id) {
    writer.add(id);
    if (stop.requested())
      fail(errc::interrupted, "stopped after ", writer.count(), " tokens: '", output, "' was not written");
  });
  const token_file_info made = writer.finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double bytes = double(text.size());
  if (call.options.json) {
    json_text j(2);
    j.begin_object()
        .field("output", std::string_view(output))
        .field("tokens", made.count)
        .field("bytes", u64(text.size()));
    j.field("vocabulary", made.vocabulary).field("width", u64(made.width)).field("seconds", seconds).end_object();
    std::fprintf(call.out, "%s\n", j.text().c_str());
  } else {
    std::fprintf(call.out,
                 "%s: %llu tokens of %u bytes, vocabulary %llu, of %zu bytes of text (%.2f a token, %.1f MB/s)\n",
                 output.c_str(), static_cast<unsigned long long>(made.count), made.width,
                 static_cast<unsigned long long>(made.vocabulary), text.size(),
                 made.count > 0 ? bytes / double(made.count) : 0.0, seconds > 0 ? bytes * 1e-6 / seconds : 0.0);
  }
  return 0;
}

}  // namespace fusionllm::inline v0
