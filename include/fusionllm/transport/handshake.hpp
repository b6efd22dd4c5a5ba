// SPDX-License-Identifier: Apache-2.0
// The first messages of a connection: hello from the side that connects, welcome or bye from the side that accepts,
// ready or bye in return. A state machine that is fed messages and says what to answer; it knows no socket and no time.
#pragma once

#include "transport.hpp"

namespace fusionllm::inline v0 {

enum class side : u8 { connecting, accepting };

class handshake {
 public:
  static constexpr u64 least_frame_cap = 1024;

  /// What to send, if anything, and whether the connection is open afterwards.
  struct answer {
    frame_kind say = frame_kind::application;  ///< `application`: nothing
    std::vector<std::byte> payload;
    bool open = false;
  };

  handshake(side s, const transport_options& options) : options_(options), side_(s) {}

  /// The side that connects begins. `announce` is where others may dial this side.
  answer begin(const std::string& announce) {
    return side_ == side::connecting ? introduce(frame_kind::hello, announce) : answer{};
  }
  /// A message came from `host`. `refusal(hello)` is the accepting application's own word. Errors: handshake,
  /// protocol, network (an address that is no use to this side).
  template <class Refusal>
  answer take(frame_kind kind, const_byte_span payload, std::string_view host, const std::string& announce,
              Refusal&& refusal) {
    const bool accepts = side_ == side::accepting;
    if (accepts && kind == frame_kind::hello && !met_) {
      meet(payload, host);
      const std::string no = refusal(remote_);
      if (!no.empty()) fail(errc::handshake, no);
      return introduce(frame_kind::welcome, announce);
    }
    if (accepts && kind == frame_kind::ready && met_) return {frame_kind::application, {}, true};
    if (!accepts && kind == frame_kind::welcome) {
      meet(payload, host);
      return {frame_kind::ready, {}, true};
    }
    fail(errc::protocol, "a frame of kind ", unsigned(kind), " out of turn in the handshake");
  }

  /// The other side, once its hello or welcome was accepted; without its token.
  const hello& remote() const { return remote_; }
  /// What the other side has not done, for messages.
  const char* missing() const {
    if (side_ == side::connecting) return "it accepted the connection and sent no welcome";
    return met_ ? "it sent its hello and did not confirm the welcome" : "it sent no hello";
  }

 private:
  answer introduce(frame_kind kind, const std::string& announce) const {
    hello mine = options_.self;
    mine.frame_cap = options_.frames.frame_cap;
    if (mine.announce.empty()) mine.announce = announce;
    return {kind, encode(mine), false};
  }
  void meet(const_byte_span payload, std::string_view host) {
    hello theirs = decode_hello(payload);
    if (const auto differs = difference(options_.self, theirs)) fail(errc::handshake, *differs);
    if (theirs.frame_cap < least_frame_cap)
      fail(errc::handshake, "frame cap at '", theirs.name, "' is ", theirs.frame_cap, ", the least is ",
           least_frame_cap);
    if (!theirs.announce.empty()) check_announced(parse_address(theirs.announce), host);
    remote_ = std::move(theirs);
    remote_.token.clear();
    met_ = true;
  }

  const transport_options& options_;
  hello remote_;
  side side_;
  bool met_ = false;
};

}  // namespace fusionllm::inline v0
