// SPDX-License-Identifier: Apache-2.0
// A byte-level vocabulary made in a test: all bytes, and what these merges make, in the order of GPT-2's ids.
#pragma once

#include <fusionllm/trainer/bpe_vocabulary.hpp>

namespace fusionllm_test {

inline fusionllm::bpe_source tiny_source(std::initializer_list<std::pair<const char*, const char*>> merges,
                                         bool end_of_text = true) {
  fusionllm::bpe_source s;
  s.tokens_file = "tiny.json";
  s.merges_file = "tiny.bpe";
  fusionllm::i64 id = 0;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    s.tokens.emplace_back(fusionllm::symbols_of({&c, 1}), id++);
  }
  for (const auto& [left, right] : merges) {
    s.merges.emplace_back(fusionllm::symbols_of(left), fusionllm::symbols_of(right));
    s.tokens.emplace_back(s.merges.back().first + s.merges.back().second, id++);
  }
  if (end_of_text) {
    s.tokens.emplace_back("<|endoftext|>", id);
    s.special.emplace_back("<|endoftext|>", id);
  }
  return s;
}

/// encoder.json of such a vocabulary. Its texts need no escapes but of '"' and '\'.
inline std::string tokens_json(const fusionllm::bpe_source& s) {
  std::string json = "{";
  for (const auto& [text, id] : s.tokens) {
    json += json.size() > 1 ? ", \"" : "\"";
    for (char c : text) (json += c == '"' || c == '\\' ? "\\" : "") += c;
    json += "\": " + std::to_string(id);
  }
  return json + "}";
}
inline std::string merges_text(const fusionllm::bpe_source& s) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : s.merges) text += left + " " + right + "\n";
  return text;
}

}  // namespace fusionllm_test
