// SPDX-License-Identifier: Apache-2.0
// Vocabularies as people have them: encoder.json with vocab.bpe (OpenAI; vocab.json with merges.txt at Hugging Face),
// or one tokenizer.json (Hugging Face). What a tokenizer.json asks for and GPT-2's tokenizer does not do is an error.
#pragma once

#include "../estimate/json_cursor.hpp"
#include "bpe_vocabulary.hpp"
#include "mapped_file.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline constexpr std::size_t largest_vocabulary_file = std::size_t(64) << 20;

inline std::string read_vocabulary_file(const std::string& path) {
  const mapped_file file(path, errc::data, "vocabulary");
  if (file.text().size() > largest_vocabulary_file)
    fail(errc::data, "vocabulary '", path, "' has ", file.text().size(), " bytes, expected ", largest_vocabulary_file,
         " at most");
  return std::string(file.text());
}

/// {"token": id, ...}
inline void add_tokens(const json_cursor& all, bpe_source& s) {
  if (!all.is_object()) all.wrong("an object of tokens and ids");
  s.tokens.reserve(all.value().size());
  for (const auto& item : all.value().items()) {
    if (!item.value().is_number_integer())
      all.refuse("the id of token '" + printable(item.key(), 40) + "' is "
                 + printable(item.value().dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 40)
                 + ", expected a whole number");
    const bool large = item.value().is_number_unsigned() && item.value().get<u64>() > u64(INT64_MAX);
    s.tokens.emplace_back(item.key(), large ? INT64_MAX : item.value().get<i64>());
  }
}

/// Two symbols with a space between.
inline std::pair<std::string, std::string> split_merge(std::string_view line, const std::string& where) {
  const auto space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size()
      || line.find(' ', space + 1) != std::string_view::npos)
    fail(errc::data, where, " is '", printable(line, 60), "', expected two tokens with a space between");
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

/// One merge a line, after a first line that begins with "#version".
inline void read_merges(const std::string& path, bpe_source& s) {
  const std::string text = read_vocabulary_file(path);
  s.merges_file = path;
  std::string_view left = text;
  for (i64 number = 1; !left.empty(); ++number) {
    const auto end = (std::min)(left.find('\n'), left.size());
    std::string_view line = left.substr(0, end);
    left.remove_prefix((std::min)(end + 1, left.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (number == 1 && line.starts_with("#version"))
      s.first_merge = 2;
    else if (line.empty() && left.empty())
      break;
    else
      s.merges.push_back(split_merge(line, "line " + std::to_string(number) + " of vocabulary '" + path + "'"));
  }
}

/// Refuses what would make other pieces or other bytes than GPT-2's rules.
inline void expect_byte_level(const json_cursor& all) {
  const auto absent = [](const json_cursor& c, const char* key) { return !c.has(key) || c.at(key).value().is_null(); };
  if (!absent(all, "normalizer"))
    all.at("normalizer").refuse("text is changed before it is cut, GPT-2's is not: use another tokenizer");
  const json_cursor model = all.at("model");
  if (!absent(model, "type") && model.at("type").text() != "BPE") model.at("type").wrong("\"BPE\"");
  for (const char* key : {"byte_fallback", "ignore_merges", "fuse_unk"})
    if (!absent(model, key) && model.at(key).truth()) model.at(key).wrong("false, as in GPT-2's");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!absent(model, key) && model.at(key).value() != "") model.at(key).wrong("\"\" or null, as in GPT-2's");
  if (!absent(model, "dropout") && model.at("dropout").value() != 0.0) model.at("dropout").wrong("null, as in GPT-2's");
  const json_cursor cut = all.at("pre_tokenizer");
  if (!cut.has("type") || cut.at("type").text() != "ByteLevel") cut.wrong("{\"type\": \"ByteLevel\"}, GPT-2's rule");
  if (!absent(cut, "add_prefix_space") && cut.at("add_prefix_space").truth())
    cut.at("add_prefix_space").wrong("false, as in GPT-2's");
  if (!absent(cut, "use_regex") && !cut.at("use_regex").truth()) cut.at("use_regex").wrong("true, as in GPT-2's");
}

inline void read_added_tokens(const json_cursor& all, bpe_source& s) {
  if (!all.has("added_tokens")) return;
  for (const json_cursor& t : all.at("added_tokens").each()) {
    if (!t.has("special") || !t.at("special").truth())
      t.refuse(
          "an added token that is not special is cut out of all text, which GPT-2's rules do not: use another "
          "tokenizer");
    s.special.emplace_back(t.at("content").text(), t.at("id").integer(0, INT64_MAX));
  }
}

inline void read_tokenizer_json(const nlohmann::json& j, bpe_source& s) {
  const json_cursor all(j, "", errc::data);
  expect_byte_level(all);
  add_tokens(all.at("model").at("vocab"), s);
  s.merges_file = s.tokens_file;
  s.merge_word = "merge ";
  for (const json_cursor& m : all.at("model").at("merges").each()) {
    if (m.is_text())
      s.merges.push_back(split_merge(m.text(), m.place()));
    else if (const auto parts = m.each(); parts.size() == 2)
      s.merges.emplace_back(parts[0].text(), parts[1].text());
    else
      m.wrong("two tokens");
  }
  read_added_tokens(all, s);
}

inline bool file_exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

/// The files of a vocabulary; `merges` is empty where one file holds all.
struct vocabulary_files {
  std::string tokens, merges;
};

inline constexpr const char* vocabulary_pairs[][2] = {{"encoder.json", "vocab.bpe"}, {"vocab.json", "merges.txt"}};

inline vocabulary_files find_vocabulary(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0)
    fail(errc::data, "cannot open vocabulary '", path, "': ", std::strerror(errno),
         ": give a tokenizer.json, or a folder with one or "
         "with encoder.json and vocab.bpe");
  if (S_ISDIR(info.st_mode)) {
    for (const auto& pair : vocabulary_pairs)
      if (file_exists(path + '/' + pair[0])) return {path + '/' + pair[0], path + '/' + pair[1]};
    if (file_exists(path + "/tokenizer.json")) return {path + "/tokenizer.json", ""};
    fail(errc::data, "vocabulary folder '", path,
         "' holds none of encoder.json, vocab.json and tokenizer.json: give another");
  }
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1),
                    name = path.substr(folder.size());
  for (const auto& pair : vocabulary_pairs)
    if (name == pair[0] || name == pair[1]) return {folder + pair[0], folder + pair[1]};
  return {path, ""};
}

}  // namespace detail

/// Reads the vocabulary at `path`: a folder (encoder.json and vocab.bpe, else vocab.json and merges.txt, else
/// tokenizer.json), one of the files of such a pair, or a tokenizer.json of any name. Of a pair, <|endoftext|> is
/// special. Errors: errc::data, naming the file and the place in it.
inline bpe_vocabulary read_bpe_vocabulary(const std::string& path) {
  const auto files = detail::find_vocabulary(path);
  bpe_source s;
  s.tokens_file = files.tokens;
  const nlohmann::json j =
      parse_json(detail::read_vocabulary_file(files.tokens), errc::data, "vocabulary '" + files.tokens + "'");
  try {
    if (files.merges.empty()) {
      detail::read_tokenizer_json(j, s);
    } else {
      detail::add_tokens(json_cursor(j, "", errc::data), s);
      s.most_unmade = 64;  // Hugging Face's have some that are special elsewhere, such as <s>
      for (const auto& [text, id] : s.tokens)
        if (text == "<|endoftext|>") s.special.emplace_back(text, id);
    }
  } catch (const error& e) {
    fail(e.code(), "vocabulary '", files.tokens, "': ", e.what());
  }
  if (!files.merges.empty()) detail::read_merges(files.merges, s);
  return bpe_vocabulary(s);
}

}  // namespace fusionllm::inline v0
