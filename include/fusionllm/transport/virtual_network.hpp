// SPDX-License-Identifier: Apache-2.0
// Many nodes in one process on virtual time: directed links with latency, bandwidth, occupancy and jitter, and the
// faults that can befall them. Every random choice comes from the seed and a counter, so a run replays from its seed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/philox.hpp"
#include "line.hpp"
#include "virtual_reactor.hpp"

namespace fusionllm::inline v0 {

class virtual_network;

/// The reactor of one node. What its node may not run any more is dropped (killed) or kept for later (stopped).
class virtual_node final : public reactor {
 public:
  virtual_node(virtual_reactor& r, std::string name) : reactor_(r), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  bool is_alive() const { return alive_; }
  bool is_stopped() const { return stopped_; }
  /// Does its machine answer, even when the process is gone?
  bool is_powered() const { return alive_ || powered_; }

  nanoseconds now() const override { return reactor_.now(); }
  timer_id at(nanoseconds when, task t) override {
    if (!alive_) return {};
    const u64 key = ++last_key_;
    const timer_id id = reactor_.at(when, [this, key] { fire(key); });
    pending_.emplace(key, pending{id, std::move(t)});
    return {key};
  }
  bool cancel(timer_id id) override {
    const auto it = pending_.find(id.value);
    if (it == pending_.end()) return false;
    reactor_.cancel(it->second.id);
    pending_.erase(it);
    return true;
  }
  void post(task t) override { at(now(), std::move(t)); }
  bool run_one(nanoseconds deadline) override { return reactor_.run_one(deadline); }
  void run() override { reactor_.run(); }
  void stop() override { reactor_.stop(); }

 private:
  friend class virtual_network;
  struct pending {
    timer_id id;
    task run;
  };
  void fire(u64 key) {
    const auto it = pending_.find(key);
    if (it == pending_.end()) return;
    if (stopped_) return void(late_.push_back(key));
    task t = std::move(it->second.run);
    pending_.erase(it);
    t();
  }
  void kill() {
    alive_ = false;
    stopped_ = false;
    for (auto& [key, p] : pending_) reactor_.cancel(p.id);
    graveyard_.swap(pending_);  // tasks may own sessions: they go when the node comes back or ends
    pending_.clear();
    late_.clear();
  }
  void revive() {
    alive_ = true;
    graveyard_.clear();
  }
  void freeze() { stopped_ = true; }
  void thaw() {
    stopped_ = false;
    for (const u64 key : std::exchange(late_, {}))
      if (const auto it = pending_.find(key); it != pending_.end())
        it->second.id = reactor_.at(now(), [this, key] { fire(key); });
  }

  virtual_reactor& reactor_;
  std::string name_;
  std::map<u64, pending> pending_, graveyard_;
  std::vector<u64> late_;
  u64 last_key_ = 0;
  bool alive_ = true, stopped_ = false, powered_ = true;
};

namespace detail {
class in_process_session;

/// What the network knows of a transport on one of its nodes.
class virtual_host {
 public:
  /// The node died: its sessions end without a word. `silent`: nor does the network tell the other ends.
  virtual void die(bool silent) = 0;
  /// Connections to `node` break; both ends notice.
  virtual void reset(std::string_view node) = 0;
  /// Someone connects to `port`. False: nobody listens there.
  virtual bool arrive(u16 port, const std::shared_ptr<in_process_session>& from) = 0;

 protected:
  ~virtual_host() = default;
};
}  // namespace detail

/// How a node dies: `process` closes its connections, as a killed process does; `power` leaves silence.
enum class death : u8 { process, power };

class virtual_network {
 public:
  explicit virtual_network(virtual_reactor& r, u64 seed = 0) : reactor_(r), key_{.seed = seed} {}
  virtual_network(const virtual_network&) = delete;
  virtual_network& operator=(const virtual_network&) = delete;

  virtual_reactor& loop() { return reactor_; }

  virtual_node& add(std::string name) {
    if (find(name)) fail(errc::internal, "virtual network: node '", name, "' exists");
    nodes_.push_back(std::make_unique<virtual_node>(reactor_, std::move(name)));
    return *nodes_.back();
  }
  virtual_node& node(std::string_view name) {
    if (virtual_node* n = find(name)) return *n;
    fail(errc::internal, "virtual network: no node '", name, "'");
  }
  virtual_node* find(std::string_view name) {
    for (auto& n : nodes_)
      if (n->name() == name) return n.get();
    return nullptr;
  }

  /// Links without their own description are like this.
  void set_default(const link_spec& s) { default_ = s; }
  void set_link(std::string_view from, std::string_view to, const link_spec& s) { wire(from, to).set(reactor_, s); }
  void set_both(std::string_view a, std::string_view b, const link_spec& s) {
    set_link(a, b, s);
    set_link(b, a, s);
  }

  // faults, at the time of the call; schedule them with loop().at()
  void kill(std::string_view name, death how = death::process) {
    virtual_node& n = node(name);
    if (!n.is_alive()) return;
    n.kill();
    n.powered_ = how == death::process;
    for (const auto& [host_name, host] : hosts_copy())
      if (host_name == name) host->die(how == death::power);
  }
  /// A killed node starts again, empty: give it a new transport.
  void revive(std::string_view name) { node(name).revive(); }
  /// As SIGSTOP: the node runs nothing, what arrives waits.
  void freeze(std::string_view name) { node(name).freeze(); }
  void thaw(std::string_view name) { node(name).thaw(); }
  /// Connections between the two break, and both ends notice.
  void reset(std::string_view a, std::string_view b) {
    for (const auto& [host_name, host] : hosts_copy())
      if (host_name == a) host->reset(b);
  }
  /// From now on nothing gets through from `from` to `to`, and nobody is told.
  void cut(std::string_view from, std::string_view to) { wire(from, to).cut = true; }
  /// What was sent meanwhile gets through now.
  void mend(std::string_view from, std::string_view to) {
    auto& w = wire(from, to);
    w.cut = false;
    for (auto& t : std::exchange(w.held, {})) reactor_.post(std::move(t));
  }

  /// Uniform in [0, below), the next number of the seed.
  u64 draw(u64 below) {
    const philox_block b = philox(key_, counter_++);
    return below == 0 ? 0 : (u64(b.v[0]) << 32 | b.v[1]) % below;
  }

  // for transports
  struct directed {
    std::shared_ptr<line> occupied;
    link_spec spec;
    bool cut = false;
    std::vector<reactor::task> held;
    void set(virtual_reactor& r, const link_spec& s) {
      spec = s;
      if (occupied) occupied->set_bits_per_second(s.bits_per_second);
      else occupied = std::make_shared<line>(r, s.bits_per_second);
    }
  };
  directed& wire(std::string_view from, std::string_view to) {
    auto [it, fresh] = wires_.try_emplace({std::string(from), std::string(to)});
    if (fresh) it->second.set(reactor_, default_);
    return it->second;
  }
  /// Latency of one packet.
  nanoseconds travel(const link_spec& s) { return s.latency + nanoseconds(draw(u64(s.jitter))); }
  /// Runs `t` at `when`, unless the link is cut by then; in that case when it is mended.
  void deliver(std::string_view from, std::string_view to, nanoseconds when, reactor::task t) {
    reactor_.at(when, [&w = wire(from, to), run = std::move(t)]() mutable {
      if (w.cut) w.held.push_back(std::move(run));
      else run();
    });
  }
  void attach(std::string_view name, detail::virtual_host& h) { hosts_.emplace_back(name, &h); }
  void detach(detail::virtual_host& h) {
    std::erase_if(hosts_, [&](const auto& p) { return p.second == &h; });
  }
  detail::virtual_host* host(std::string_view name) {
    for (auto& [host_name, h] : hosts_)
      if (host_name == name) return h;
    return nullptr;
  }

 private:
  std::vector<std::pair<std::string, detail::virtual_host*>> hosts_copy() const { return hosts_; }

  virtual_reactor& reactor_;
  random_key key_;
  u64 counter_ = 0;
  link_spec default_{.latency = 50 * microsecond, .bits_per_second = 0, .jitter = 0};
  std::vector<std::unique_ptr<virtual_node>> nodes_;
  std::map<std::pair<std::string, std::string>, directed> wires_;
  std::vector<std::pair<std::string, detail::virtual_host*>> hosts_;
};

}  // namespace fusionllm::inline v0
