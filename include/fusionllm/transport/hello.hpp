// SPDX-License-Identifier: Apache-2.0
// Who a peer says it is: the payload of the first message in each direction of a connection. What differs between two
// hellos ends a connection, with the reason named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../core/bytes.hpp"
#include "../core/version.hpp"

namespace fusionllm::inline v0 {

/// One line of the configuration that all peers must share. A key that ends with '?' is compared where both have it.
struct config_entry {
  std::string key, value;
  bool operator==(const config_entry&) const = default;
};

struct hello {
  std::string run = {};                 ///< id of the run
  std::string token = {};               ///< secret of the run; never printed
  u64 fingerprint = 0;                ///< of the model; 0 on a side that knows none matches any
  std::vector<config_entry> config = {}; ///< in any order; a side that gives none matches any
  std::string role = {};                ///< broker, peer, ...
  std::string name = {};                ///< of this peer, for messages
  u32 rank = 0;
  std::string announce = {};            ///< where others may dial it; the transport fills it in when empty
  std::string library = std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
                        std::to_string(version_patch);
  u64 frame_cap = 0;                  ///< filled in by the transport
};

inline constexpr u64 hello_cap = 64 << 10;  ///< bytes of an encoded hello

/// Text from outside, made safe for a terminal and a log, cut to `limit`.
inline std::string printable(std::string_view text, std::size_t limit = 200) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto u = static_cast<unsigned char>(c);
    if (u >= ' ' && u < 127) {
      out += c;
    } else {
      out += "\\x";
      out += digits[u >> 4];
      out += digits[u & 15];
    }
  }
  if (text.size() > limit) out += "...";
  return out;
}

/// Equal or not, in a time that depends on the longer length only.
inline bool equal_secrets(std::string_view a, std::string_view b) {
  const std::size_t n = a.size() > b.size() ? a.size() : b.size();
  volatile unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<unsigned char>(i < a.size() ? a[i] : 0);
    const auto y = static_cast<unsigned char>(i < b.size() ? b[i] : 0);
    differs = static_cast<unsigned char>(differs | (x ^ y));
  }
  return differs == 0;
}

/// Error: config, when the texts do not fit a hello.
inline std::vector<std::byte> encode(const hello& h) {
  byte_writer w;
  w.text(h.library).text(h.run).text(h.token).number(h.fingerprint).text(h.role).text(h.name).number(h.rank);
  w.text(h.announce).number(h.frame_cap).number(u32(h.config.size()));
  for (const config_entry& e : h.config) w.text(e.key).text(e.value);
  if (w.bytes().size() > hello_cap)
    fail(errc::config, "the configuration takes ", w.bytes().size(), " bytes in the handshake, the limit is ",
         hello_cap, ": shorten its values, or give their digests");
  return w.take();
}

/// Error: protocol. Names are made printable.
inline hello decode_hello(const_byte_span data) {
  byte_reader r(data);
  hello h;
  h.library = printable(r.text(64, "hello: library version"));
  h.run = printable(r.text(256, "hello: run id"));
  h.token = r.text(1024, "hello: token");
  h.fingerprint = r.number<u64>("hello: fingerprint");
  h.role = printable(r.text(64, "hello: role"));
  h.name = printable(r.text(256, "hello: name"));
  h.rank = r.number<u32>("hello: rank");
  h.announce = printable(r.text(512, "hello: announced address"));
  h.frame_cap = r.number<u64>("hello: frame cap");
  const std::size_t n = r.count(1024, 8, "hello: configuration");
  h.config.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::string key = printable(r.text(256, "hello: configuration key"));
    h.config.push_back({std::move(key), printable(r.text(4096, "hello: configuration value"), 4096)});
  }
  r.end("hello");
  return h;
}

/// What keeps the two from working together, readable on both sides; none when nothing does. Compared in the order
/// run, token, model, configuration, so that a stranger learns nothing about the latter.
inline std::optional<std::string> difference(const hello& mine, const hello& theirs) {
  const std::string me = "at '" + mine.name + "'", you = "at '" + theirs.name + "'";
  if (mine.run != theirs.run)
    return "run id is '" + theirs.run + "' " + you + " and '" + mine.run + "' " + me +
           ": join the same run, or use another port";
  if (!equal_secrets(mine.token, theirs.token))
    return "the token " + you + " is not the token " + me + ": give every peer of the run the same token";
  if (mine.fingerprint != 0 && theirs.fingerprint != 0 && mine.fingerprint != theirs.fingerprint)
    return "model fingerprint is " + std::to_string(theirs.fingerprint) + ' ' + you + " and " +
           std::to_string(mine.fingerprint) + ' ' + me + ": build every peer from the same model";
  if (mine.config.empty() || theirs.config.empty()) return std::nullopt;
  auto find = [](const hello& h, const std::string& key) -> const config_entry* {
    for (const config_entry& e : h.config)
      if (e.key == key) return &e;
    return nullptr;
  };
  for (const config_entry& e : mine.config) {
    const config_entry* other = find(theirs, e.key);
    if (!other && e.key.ends_with('?')) continue;
    if (!other) return "configuration key '" + e.key + "' is '" + e.value + "' " + me + " and missing " + you;
    if (other->value != e.value)
      return "configuration key '" + e.key + "' is '" + printable(other->value) + "' " + you + " and '" +
             printable(e.value) + "' " + me + ": give every peer the same configuration";
  }
  for (const config_entry& e : theirs.config)
    if (!find(mine, e.key) && !e.key.ends_with('?'))
      return "configuration key '" + e.key + "' is '" + printable(e.value) + "' " + you + " and missing " + me;
  return std::nullopt;
}

}  // namespace fusionllm::inline v0
