// SPDX-License-Identifier: Apache-2.0
// Addresses as users write them: host:port, [::1]:port, localhost:port, :port. Parsing resolves nothing.
#pragma once

#include <string>
#include <string_view>

#include "../core/error.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// A host (name, IPv4, IPv6 without brackets, or interface name) and a port; port 0 lets the system choose.
struct address {
  std::string host;
  u16 port = 0;

  bool empty() const { return host.empty() && port == 0; }
  bool operator==(const address&) const = default;
};

inline std::string to_string(const address& a) {
  const bool v6 = a.host.find(':') != std::string::npos;
  return (v6 ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

/// True for 127.0.0.0/8, ::1 and localhost as texts.
inline bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.substr(0, 4) == "127." ||
         host.substr(0, 11) == "::ffff:127.";
}
/// True for addresses that stand for every interface.
inline bool is_unspecified(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

/// Parses `host:port`. An empty host is localhost. Error: network, with the text and an example.
inline address parse_address(std::string_view text) {
  auto bad = [&](const char* why) {
    fail(errc::network, "address '", text, "': ", why, "; write host:port, such as 127.0.0.1:4000 or [::1]:4000");
  };
  address a;
  std::string_view port;
  if (!text.empty() && text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) bad("'[' without ']'");
    a.host = text.substr(1, close - 1);
    if (a.host.empty()) bad("nothing between the brackets");
    if (close + 1 >= text.size() || text[close + 1] != ':') bad("no port after ']'");
    port = text.substr(close + 2);
  } else {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) bad("no port");
    if (text.find(':') != colon) bad("an IPv6 address needs brackets");
    a.host = colon == 0 ? "localhost" : text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  for (const char c : a.host)
    if (static_cast<unsigned char>(c) <= ' ' || c == '/' || c == '@' || c == 127)
      bad("a blank, a control character, '/' or '@' in the host");
  if (port.empty() || port.size() > 5) bad("the port is missing or too long");
  unsigned value = 0;
  for (const char c : port) {
    if (c < '0' || c > '9') bad("the port is not a number");
    value = value * 10 + unsigned(c - '0');
  }
  if (value > 65535) bad("the port is above 65535");
  a.port = u16(value);
  return a;
}

/// Refuses a loopback address announced to a peer on another machine, who would dial itself. Error: network.
inline void check_announced(const address& announced, std::string_view remote_host) {
  if (is_loopback(announced.host) && !is_loopback(remote_host))
    fail(errc::network, "address ", to_string(announced), " is announced to ", remote_host,
         ", which would reach itself there: listen on an address that the other machine can reach (bind), such as "
         "0.0.0.0:0");
}

}  // namespace fusionllm::inline v0
