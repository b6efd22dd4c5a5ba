// SPDX-License-Identifier: Apache-2.0
// The transport between nodes of a `virtual_network`. Sessions are the same as over sockets, handshake included; only
// the carrier differs: frames are copied when they leave and arrive when the link says so.
//
//   fl::virtual_reactor time;
//   fl::virtual_network net(time, seed);
//   net.set_default({.latency = 20 * fl::millisecond, .bits_per_second = 8'000'000});
//   fl::virtual_node& a = net.add("a");                   // the reactor of everything that lives on node a
//   fl::in_process transport_a(net, "a", {.self = {.run = "r", .name = "a"}});
//   transport_a.listen({"a", 1}, broker);                 // others connect to {"a", 1}
//   time.at(3 * fl::second, [&] { net.kill("a"); });
//   time.run_while([&] { return !finished; }, 60 * fl::second);
#pragma once

#include <cstring>
#include <map>

#include "session_set.hpp"
#include "virtual_network.hpp"

namespace fusionllm::inline v0 {
namespace detail {

class in_process_session final : public session {
 public:
  in_process_session(virtual_network& n, virtual_node& node, std::shared_ptr<const transport_options> options,
                     session_owner& owner, connection_handler& h, side s, std::string other, u16 port,
                     std::string whom)
      : session(node, std::move(options), owner, h, s, other + ":" + std::to_string(port), std::move(whom)),
        network_(n),
        node_(node),
        other_(std::move(other)),
        port_(port) {
    auto& w = network_.wire(node_.name(), other_);
    pace(w.occupied, 0);  // the latency is drawn for each frame
  }

  void join(const std::shared_ptr<in_process_session>& peer) { peer_ = peer; }
  const std::string& other() const { return other_; }
  u16 port() const { return port_; }
  virtual_node& node() const { return node_; }
  std::shared_ptr<in_process_session> peer() const { return peer_.lock(); }

  /// From now on the other end hears nothing of this one.
  void fall_silent() { fin_sent_ = true; }
  /// Ends this end as if the network had reset it.
  void reset() {
    post_here([](in_process_session& s) { s.lost(errc::peer_lost, "the connection was reset"); });
  }

 protected:
  bool carrier_ready() override {
    if (!node_.is_stopped()) return true;
    // A stopped process hands over nothing; this task waits until it goes on.
    node_.post([weak = weak_from_this()] {
      if (const auto s = weak.lock()) static_cast<in_process_session&>(*s).go_on();
    });
    return false;
  }
  void depart(outgoing_chunk&& c, nanoseconds left, nanoseconds) override {
    struct packet {
      encoded_header header;
      std::vector<std::byte> payload;
    };
    auto p = std::make_shared<packet>();
    p->header = c.header;
    for (std::size_t i = 0; i < c.count; ++i) p->payload.insert(p->payload.end(), c.parts[i].begin(), c.parts[i].end());
    node_.at(left, [weak = weak_from_this(), c = std::move(c)] {
      if (const auto s = weak.lock()) static_cast<in_process_session&>(*s).departed(c);
    });
    in_order(left, [p](in_process_session& s) {
      const auto memory = s.begin_frame(p->header);
      if (!memory || memory->size() != p->payload.size()) return;
      if (!p->payload.empty()) std::memcpy(memory->data(), p->payload.data(), p->payload.size());
      s.end_frame();
    });
  }
  void hang_up() override { send_fin(); }
  void cut_off() override { send_fin(); }

 private:
  void go_on() { resume_carrier(); }
  void send_fin() {
    if (std::exchange(fin_sent_, true)) return;
    in_order(node_.now(), [](in_process_session& s) { s.lost(errc::peer_lost, "the connection was lost"); });
  }
  /// Runs f on the other end once the link has carried what was sent before.
  template <class F>
  void in_order(nanoseconds left, F f) {
    const auto& spec = network_.wire(node_.name(), other_).spec;
    arrival_ = (std::max)(arrival_, left + network_.travel(spec));
    network_.deliver(node_.name(), other_, arrival_, [peer = peer_, f = std::move(f)]() mutable {
      if (const auto s = peer.lock()) s->post_here(std::move(f));
    });
  }
  template <class F>
  void post_here(F f) {
    node_.post([weak = weak_from_this(), f = std::move(f)]() mutable {
      if (const auto s = weak.lock()) f(static_cast<in_process_session&>(*s));
    });
  }

  virtual_network& network_;
  virtual_node& node_;
  std::string other_;
  u16 port_;
  std::weak_ptr<in_process_session> peer_;
  nanoseconds arrival_ = 0;
  bool fin_sent_ = false;
};

}  // namespace detail

class in_process final : public transport, private detail::session_set, private detail::virtual_host {
 public:
  /// `node` was added to `n`, and everything of the transport's user runs on it. Errors: config.
  in_process(virtual_network& n, std::string_view node, transport_options options)
      : session_set(options.half_open),
        network_(n),
        node_(n.node(node)),
        options_(std::make_shared<const transport_options>(checked(std::move(options)))) {
    network_.attach(node_.name(), *this);
  }
  ~in_process() override {
    network_.detach(*this);
    orphan_all();
  }

  reactor& loop() override { return node_; }
  /// The host is the node's name or empty; port 0 chooses one.
  address listen(const address& bind, connection_handler& h) override {
    if (!bind.host.empty() && bind.host != node_.name())
      fail(errc::network, "cannot bind ", to_string(bind), ": node '", node_.name(), "' has no such address");
    u16 port = bind.port;
    if (port == 0)
      for (port = 40000; listeners_.count(port) != 0;) ++port;
    if (!listeners_.emplace(port, &h).second)
      fail(errc::network, "cannot bind ", node_.name(), ':', port, ": in use, choose another port or 0");
    return {node_.name(), port};
  }
  void stop_listening() override { listeners_.clear(); }

  connection_ptr connect(dial d, connection_handler& h) override {
    auto s = std::make_shared<detail::in_process_session>(network_, node_, options_, owner(), h,
                                                          side::connecting, d.to.host, d.to.port,
                                                          d.whom);
    add(s);
    s->expect_open(d.timeout, "no answer to the connection");
    call(s, d.retry);
    return s;
  }

 private:
  using session_ptr = std::shared_ptr<detail::in_process_session>;
  detail::session_owner& owner() { return *this; }

  void call(const session_ptr& s, bool retry) {
    if (!network_.find(s->other()))
      return node_.post([s] { s->lost(errc::network, "there is no node of this name in the virtual network"); });
    const auto& spec = network_.wire(node_.name(), s->other()).spec;
    auto ring = [this, weak = std::weak_ptr(s), retry, &n = network_] {
      const session_ptr from = weak.lock();
      if (!from || !n.node(from->other()).is_powered()) return;
      virtual_node& there = n.node(from->other());
      const auto& back = n.wire(there.name(), from->node().name()).spec;
      auto answer = [&](auto f) {
        n.deliver(there.name(), from->node().name(), n.loop().now() + n.travel(back), [weak, f] {
          if (const session_ptr c = weak.lock())
            c->node().post([weak, f] {
              if (const session_ptr caller = weak.lock()) f(caller);
            });
        });
      };
      detail::virtual_host* host = there.is_alive() ? n.host(there.name()) : nullptr;
      if (host && host->arrive(from->port(), from)) {
        answer([](const session_ptr& c) { c->established(); });
      } else if (retry) {
        answer([this](const session_ptr& c) {
          c->waits_for("nobody listens there");
          node_.at(node_.now() + 50 * millisecond, [this, w = std::weak_ptr(c)] {
            if (const session_ptr again = w.lock()) call(again, true);
          });
        });
      } else {
        answer([](const session_ptr& c) {
          c->lost(errc::network, "connection refused: nobody listens there; start it first, or check the port");
        });
      }
    };
    network_.deliver(node_.name(), s->other(), node_.now() + network_.travel(spec), std::move(ring));
  }

  // virtual_host
  bool arrive(u16 port, const session_ptr& from) override {
    const auto it = listeners_.find(port);
    if (it == listeners_.end()) return false;
    auto s = std::make_shared<detail::in_process_session>(network_, node_, options_, owner(), *it->second,
                                                          side::accepting, from->node().name(),
                                                          ++last_port_, std::string());
    s->join(from);
    from->join(s);
    s->expect_open(options_->handshake_timeout, "it sent no hello");
    s->established();
    add(s);
    return true;
  }
  void die(bool silent) override {
    if (silent)
      for (const auto& s : all()) static_cast<detail::in_process_session&>(*s).fall_silent();
    listeners_.clear();
    orphan_all();
  }
  void reset(std::string_view other) override {
    for (const auto& s : all()) {
      auto& one = static_cast<detail::in_process_session&>(*s);
      if (one.other() != other) continue;
      one.reset();
      if (const session_ptr peer = one.peer()) peer->reset();
    }
  }
  // session_owner
  std::string announced(detail::session&) override {
    if (listeners_.empty()) return {};
    return node_.name() + ":" + std::to_string(listeners_.begin()->first);
  }

  virtual_network& network_;
  virtual_node& node_;
  std::shared_ptr<const transport_options> options_;
  std::map<u16, connection_handler*> listeners_;
  u16 last_port_ = 50000;
};

}  // namespace fusionllm::inline v0
