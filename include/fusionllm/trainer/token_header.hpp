// SPDX-License-Identifier: Apache-2.0
// The header of a token file: 64 bytes, little-endian, the last eight the checksum of the others, then the tokens, each
// of `width` bytes, to the end of the file. A file says by its first eight bytes that it is one.
#pragma once

#include "checkpoint_format.hpp"

namespace fusionllm::inline v0 {

/// What a token file holds.
struct token_file_info {
  u32 width = 2;       ///< bytes of a token: 2 where every id fits, else 4
  u64 vocabulary = 0;  ///< of the tokenizer; all tokens are below it
  u64 count = 0;       ///< of tokens
  u64 tokenizer = 0;   ///< its identity
  u64 content = 0;     ///< XXH3 of the tokens' bytes
  bool operator==(const token_file_info&) const = default;
};

constexpr u32 token_width(u64 vocabulary) { return vocabulary <= (u64(1) << 16) ? 2 : 4; }

namespace detail {

inline constexpr char token_magic[9] = "FLMTOKS\n";
inline constexpr u32 token_file_version = 1;
inline constexpr std::size_t token_header_bytes = 64;
inline constexpr u64 largest_vocabulary = u64(1) << 31;
using token_header = sealed_bytes<token_header_bytes>;  // magic 0, version 8, width 12, vocabulary 16, count 24,
                                                        // tokenizer 32, content 40

inline token_header header_of(const token_file_info& i) {
  token_header h;
  std::memcpy(h.data(), token_magic, 8);
  h.put(8, token_file_version);
  h.put(12, i.width);
  h.put(16, i.vocabulary);
  h.put(24, i.count);
  h.put(32, i.tokenizer);
  h.put(40, i.content);
  h.seal();
  return h;
}

/// Errors: errc::data, naming what does not fit; `file_bytes` is the size of the whole file, `begin` its first 64
/// bytes, or fewer where it has fewer.
inline token_file_info read_token_header(std::string_view begin, u64 file_bytes, const std::string& path) {
  const auto refuse = [&](const auto&... parts) { fail(errc::data, "token file '", path, "' ", parts...); };
  if (begin.size() < token_header_bytes)
    refuse("has ", begin.size(), " bytes, expected ", token_header_bytes,
           " of header or more: it is cut off; write it anew with `tokenize`");
  if (begin.substr(0, 8) != std::string_view(token_magic, 8))
    refuse("does not begin as one: write one with `tokenize`");
  token_header h;
  std::memcpy(h.data(), begin.data(), token_header_bytes);
  if (h.get<u32>(8) != token_file_version)
    refuse("is of version ", h.get<u32>(8), ", expected ", token_file_version, ": write it anew with `tokenize`");
  if (!h.is_sealed())
    refuse("has a damaged header (its checksum does not fit): copy it again, or write it anew with `tokenize`");
  const token_file_info i{h.get<u32>(12), h.get<u64>(16), h.get<u64>(24), h.get<u64>(32), h.get<u64>(40)};
  if (i.width != 2 && i.width != 4) refuse("has tokens of ", i.width, " bytes, expected 2 or 4");
  if (i.vocabulary < 1 || i.vocabulary > largest_vocabulary || (i.width == 2 && i.vocabulary > 65536))
    refuse("has a vocabulary of ", i.vocabulary, ", expected 1 to ", i.width == 2 ? u64(65536) : largest_vocabulary);
  const u64 held = file_bytes - token_header_bytes, whole = held / i.width;
  if (i.count > whole || i.count * i.width != held)
    refuse("holds ", whole, " whole tokens (", held, " bytes after its header), expected ", i.count, " of ", i.width,
           " bytes: it ", i.count > whole ? "is cut off" : "has bytes behind its end",
           "; copy it again, or write it anew with `tokenize`");
  return i;
}

}  // namespace detail

}  // namespace fusionllm::inline v0
