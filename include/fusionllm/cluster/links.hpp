// SPDX-License-Identifier: Apache-2.0
// The connections of one node of a run: each hears a heartbeat at a fixed interval, and one that has been silent for too
// long, or takes no more, is reported by name. What a process computes does not delay its heartbeats: they come from its
// protocol's thread. A heartbeat carries a count of what has happened there in the header's step, so that who waits can be
// told from who works.
#pragma once

#include <vector>

#include "../transport/transport.hpp"
#include "bounded_archive.hpp"
#include "control.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// "10 s", "1500 ms".
inline std::string in_seconds(nanoseconds t) {
  return t % second == 0 ? std::to_string(t / second) + " s" : std::to_string(t / millisecond) + " ms";
}

/// What a failure message says. A number that is no code of a failure is a protocol error.
inline error error_of(const failure& f) {
  const bool known = (f.code > u32(errc::ok) && f.code <= u32(errc::diverged)) || f.code == u32(errc::interrupted);
  return error(known ? errc(f.code) : errc::protocol, printable(f.text, 2000));
}

}  // namespace detail

class watched_links {
 public:
  watched_links(reactor& loop, nanoseconds heartbeat, nanoseconds silence, callback<void(const error&)> on_failure)
      : loop_(loop), heartbeat_(heartbeat), silence_(silence), on_failure_(std::move(on_failure)) {}
  ~watched_links() { stop(); }

  void add(connection& c) {
    links_.push_back({&c, loop_.now()});
    if (!timer_) wait();
  }
  void remove(connection& c) {
    std::erase_if(links_, [&](const link& l) { return l.c == &c; });
  }
  /// What this node's next heartbeats carry.
  u64 progress = 0;

  void heard(connection& c) {
    for (link& l : links_)
      if (l.c == &c) l.heard = loop_.now();
  }
  void stop() {
    if (timer_) loop_.cancel(timer_);
    timer_ = {};
    links_.clear();
  }

 private:
  struct link {
    connection* c;
    nanoseconds heard;
  };
  void wait() {
    due_ = loop_.now() + heartbeat_;
    timer_ = loop_.at(due_, [this] { beat(); });
  }
  void beat() {
    // This process was stopped, or its machine slept: what came meanwhile has still to be looked at.
    if (const nanoseconds late = loop_.now() - due_; late > heartbeat_)
      for (link& l : links_) l.heard += late;
    wait();
    for (std::size_t i = 0; i < links_.size(); ++i) {
      outgoing m;
      m.header.kind = frame_kind::heartbeat;
      m.header.step = progress;
      try {
        links_[i].c->send(std::move(m));
      } catch (const error& e) {
        return on_failure_(e);
      }
    }
    for (const link& l : links_)
      if (loop_.now() - l.heard > silence_) {
        const error why(errc::timeout, l.c->label() + " has been silent for " +
                                           detail::in_seconds(loop_.now() - l.heard) + ": it is stopped, or cut off from the network");
        on_failure_(why);
        return;
      }
  }

  reactor& loop_;
  nanoseconds heartbeat_, silence_;
  callback<void(const error&)> on_failure_;
  std::vector<link> links_;
  timer_id timer_;
  nanoseconds due_ = 0;
};

/// Errors: resource, when too many messages wait on this connection.
template <class T>
void send_control(connection& c, control_kind kind, const T& x) {
  outgoing m;
  m.header.kind = frame_kind::control;
  m.header.edge = u32(kind);
  m.owned = encode_control(x);
  c.send(std::move(m));
}
/// Why this node ends, to one that is still there. What cannot be sent is lost: the connection is about to end anyway.
inline void send_failure(connection& c, const error& why) {
  try {
    send_control(c, control_kind::failed, failure{u32(why.code()), why.what()});
  } catch (const error&) {
  }
}

}  // namespace fusionllm::inline v0
