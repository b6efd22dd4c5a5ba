// SPDX-License-Identifier: Apache-2.0
// A connection handler that remembers what happened, for tests of every transport.
#pragma once

#include <fusionllm/transport/transport.hpp>

#include <map>
#include <string>
#include <vector>

namespace fusionllm_test {

namespace fl = fusionllm;

inline std::vector<std::byte> pattern(std::size_t n, unsigned seed = 1) {
  std::vector<std::byte> v(n);
  unsigned x = seed * 2654435761u + 1;
  for (auto& b : v) {
    x = x * 1664525u + 1013904223u;
    b = std::byte(x >> 24);
  }
  return v;
}

struct recorder : fl::connection_handler {
  struct message {
    fl::frame_header header;
    std::vector<std::byte> payload;
    fl::nanoseconds at;
  };
  explicit recorder(fl::reactor& r) : loop(r) {}

  std::string refusal(const fl::hello& remote) override { return refuse_name == remote.name ? "not you" : ""; }
  void on_open(fl::connection& c) override {
    ++opened;
    last = c.shared();
    opened_at = loop.now();
    if (greet) c.send(std::move(*greet)), greet.reset();
  }
  fl::byte_span place(fl::connection&, const fl::frame_header& h) override {
    if (!places) return {};
    auto& slot = placed[h.edge];
    slot.resize(std::size_t(h.total_length));
    return slot;
  }
  void on_message(fl::connection&, const fl::frame_header& h, fl::const_byte_span p) override {
    messages.push_back({h, std::vector<std::byte>(p.begin(), p.end()), loop.now()});
    if (!throw_text.empty()) fl::fail(fl::errc::model, throw_text);
  }
  void on_sent(fl::connection&, fl::u64 tag) override { sent.push_back(tag); }
  void on_closed(fl::connection&, const fl::error& e) override {
    closed.push_back(e);
    closed_at = loop.now();
  }
  void on_rejected(const fl::error& e) override { rejected.push_back(e); }

  fl::reactor& loop;
  int opened = 0;
  fl::connection_ptr last;
  fl::nanoseconds opened_at = 0, closed_at = 0;
  std::vector<message> messages;
  std::vector<fl::u64> sent;
  std::vector<fl::error> closed, rejected;
  std::map<fl::u32, std::vector<std::byte>> placed;
  bool places = false;
  std::string refuse_name = "(nobody)", throw_text;
  std::optional<fl::outgoing> greet;
};

inline fl::outgoing message_of(fl::const_byte_span data, fl::u64 tag = 0, fl::priority level = fl::priority::tensor,
                               fl::u32 edge = 0) {
  fl::outgoing m;
  m.header.kind = fl::frame_kind::activation;
  m.header.edge = edge;
  m.parts = {data};
  m.level = level;
  m.tag = tag;
  return m;
}
inline fl::outgoing heartbeat() {
  fl::outgoing m;
  m.header.kind = fl::frame_kind::heartbeat;
  return m;
}
inline fl::transport_options named(const std::string& name) {
  fl::transport_options o;
  o.self.run = "run-1";
  o.self.token = "secret-token";
  o.self.fingerprint = 99;
  o.self.config = {{"learning_rate", "0.001"}, {"seed", "7"}};
  o.self.role = "peer";
  o.self.name = name;
  return o;
}
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace fusionllm_test
