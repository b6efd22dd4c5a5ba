// SPDX-License-Identifier: Apache-2.0
// A transport made as slow as a topology says: once a connection is open, what this side sends occupies a line for
// bytes / bandwidth and arrives `latency` later. Needs no privileges; headers and heartbeats count.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "line.hpp"
#include "transport.hpp"

namespace fusionllm::inline v0 {

/// The links that leave this process, by the name of the peer at their other end.
class paced_links {
 public:
  struct link {
    std::shared_ptr<line> on;
    nanoseconds latency = 0;
  };
  explicit paced_links(reactor& r) : reactor_(r) {}

  /// A line of its own.
  void set(const std::string& peer, const link_spec& s) {
    links_[peer] = {std::make_shared<line>(reactor_, s.bits_per_second), s.latency};
  }
  /// A line that several links share, such as a site's uplink; see shared_line().
  void set(const std::string& peer, std::shared_ptr<line> on, nanoseconds latency) {
    links_[peer] = {std::move(on), latency};
  }
  std::shared_ptr<line> shared_line(u64 bits_per_second) { return std::make_shared<line>(reactor_, bits_per_second); }
  /// For peers without a link of their own.
  void set_default(const link_spec& s) { default_ = s; }

  /// The link to `peer`; `on` is empty when it is not paced.
  link find(const std::string& peer) {
    if (const auto it = links_.find(peer); it != links_.end()) return it->second;
    if (default_.bits_per_second == 0 && default_.latency == 0) return {};
    set(peer, default_);
    return links_[peer];
  }

 private:
  reactor& reactor_;
  std::map<std::string, link> links_;
  link_spec default_;
};

class paced final : public transport {
 public:
  paced(transport& inner, paced_links& links) : inner_(inner), links_(links) {}

  reactor& loop() override { return inner_.loop(); }
  address listen(const address& bind, connection_handler& h) override { return inner_.listen(bind, before(h)); }
  connection_ptr connect(dial d, connection_handler& h) override { return inner_.connect(std::move(d), before(h)); }
  void stop_listening() override { inner_.stop_listening(); }

 private:
  /// Stands before the user's handler until a connection opens, then steps aside.
  class doorman final : public connection_handler {
   public:
    doorman(paced_links& links, connection_handler& next) : links_(links), next_(next) {}
    std::string refusal(const hello& remote) override { return next_.refusal(remote); }
    void on_open(connection& c) override {
      if (const auto l = links_.find(c.remote().name); l.on) c.pace(l.on, l.latency);
      c.set_handler(next_);
      next_.on_open(c);
    }
    void on_message(connection& c, const frame_header& h, const_byte_span p) override { next_.on_message(c, h, p); }
    void on_closed(connection& c, const error& why) override { next_.on_closed(c, why); }
    void on_rejected(const error& why) override { next_.on_rejected(why); }
    bool serves(const connection_handler& h) const { return &next_ == &h; }

   private:
    paced_links& links_;
    connection_handler& next_;
  };
  connection_handler& before(connection_handler& h) {
    for (auto& d : doormen_)
      if (d->serves(h)) return *d;
    doormen_.push_back(std::make_unique<doorman>(links_, h));
    return *doormen_.back();
  }

  transport& inner_;
  paced_links& links_;
  std::vector<std::unique_ptr<doorman>> doormen_;
};

}  // namespace fusionllm::inline v0
