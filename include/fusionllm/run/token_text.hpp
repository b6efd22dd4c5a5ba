// SPDX-License-Identifier: Apache-2.0
// Tokens as people read and write them: the text of a tokenizer (--tokenizer), bytes where tokens are bytes, else
// numbers.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "../trainer/bpe.hpp"
#include "../trainer/config_text.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Tokens as text: bytes where tokens are bytes, else numbers.
inline std::string text_of(std::span<const std::int32_t> tokens, bool bytes) {
  std::string text;
  for (std::int32_t t : tokens) {
    if (bytes)
      text += static_cast<char>(t);
    else
      text += (text.empty() ? "" : " ") + std::to_string(t);
  }
  return text;
}

inline std::vector<std::int32_t> tokens_of(std::string_view prompt, bool bytes, i64 vocabulary) {
  std::vector<std::int32_t> tokens;
  if (bytes) {
    for (char c : prompt) tokens.push_back(static_cast<unsigned char>(c));
  } else {
    while (!prompt.empty()) {
      const auto end = (std::min)(prompt.find_first_of(" ,\n"), prompt.size());
      if (end > 0) tokens.push_back(parse_number<std::int32_t>("prompt", prompt.substr(0, end), "token numbers"));
      prompt.remove_prefix((std::min)(end + 1, prompt.size()));
    }
  }
  if (tokens.empty()) fail(errc::usage, "the prompt is empty: give one token at least");
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary)
      fail(errc::data, "token ", i, " of the prompt is ", tokens[i], ", expected 0 to ", vocabulary - 1);
  return tokens;
}

}  // namespace detail

class token_text {
 public:
  /// `vocabulary` is the model's. Errors: errc::data: a tokenizer that cannot be read, or has more tokens than the
  /// model; errc::config when tokens would be bytes but the model knows more than those.
  token_text(const run_config& c, i64 vocabulary) : bytes_(c.token_format == "bytes"), vocabulary_(vocabulary) {
    if (c.tokenizer.empty()) {
      if (bytes_ && vocabulary > 256)
        fail(errc::config, "the model knows ", vocabulary,
             " tokens, more than the 256 bytes: name its tokenizer with --tokenizer, or "
             "say --token-format uint16 to use numbers");
      return;
    }
    tokenizer_.emplace(c.tokenizer);
    if (tokenizer_->vocabulary() > vocabulary)
      fail(errc::data, "tokenizer '", c.tokenizer, "' has ", tokenizer_->vocabulary(), " tokens, the model knows ",
           vocabulary, ": name the tokenizer that its data was made with");
    stream_.emplace(*tokenizer_);
  }

  /// Errors: errc::usage for an empty prompt; errc::data, errc::config for numbers that are no tokens.
  std::vector<std::int32_t> tokens(std::string_view prompt, special_text special) const {
    if (!tokenizer_) return detail::tokens_of(prompt, bytes_, vocabulary_);
    std::vector<std::int32_t> all;
    tokenizer_->encode(prompt, special, [&](u32 id) { all.push_back(std::int32_t(id)); });
    if (all.empty()) fail(errc::usage, "the prompt is empty: give one character at least");
    return all;
  }

  /// The text that these tokens complete, after those before: part of a character is held back. Tokens that the model
  /// knows and its tokenizer does not (a vocabulary is often rounded up) have no text.
  std::string add(std::span<const std::int32_t> more) {
    if (!tokenizer_) {
      const std::string text = detail::text_of(more, bytes_);
      return !bytes_ && std::exchange(begun_, true) ? " " + text : text;
    }
    std::string text;
    for (const std::int32_t t : more)
      if (t < tokenizer_->vocabulary()) text += stream_->add(t);
    return text;
  }
  /// What was held back.
  std::string finish() { return stream_ ? stream_->finish() : std::string(); }

 private:
  bool bytes_, begun_ = false;
  i64 vocabulary_;
  std::optional<bpe_tokenizer> tokenizer_;
  std::optional<bpe_stream> stream_;
};

}  // namespace fusionllm::inline v0
