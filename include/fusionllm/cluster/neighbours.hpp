// SPDX-License-Identifier: Apache-2.0
// A peer's connections to the other peers of its run. The broker says who is where; of two peers the one of the higher
// rank dials. A connection counts once it is open and from whom it should be.
#pragma once

#include <algorithm>

#include "../transport/paced.hpp"
#include "links.hpp"

namespace fusionllm::inline v0 {

class neighbours {
 public:
  /// `paces` may be null. `timeout`: for each connection.
  neighbours(u32 self, int peers, transport& net, paced_links* paces, nanoseconds timeout)
      : self_(self), net_(net), paces_(paces), timeout_(timeout), open_(std::size_t(peers), nullptr) {}

  u32 size() const { return u32(open_.size()); }
  /// Null while there is none.
  connection* at(u64 rank) const { return open_[std::size_t(rank)]; }
  std::string name_of(u32 rank) const {
    for (const auto& m : roster_.members)
      if (m.rank == rank) return m.name;
    return "peer " + std::to_string(rank);
  }
  /// Is there a connection to every other peer?
  bool complete() const {
    for (u32 r = 0; r < size(); ++r)
      if (r != self_ && !open_[r]) return false;
    return true;
  }

  /// Why someone is not let in; empty to let it in.
  std::string refusal(const hello& remote) const {
    if (remote.role != "peer") return "this is a peer: only peers connect to it, not a " + remote.role;
    if (remote.rank >= size() || remote.rank == self_)
      return "rank " + std::to_string(remote.rank) + " is not that of another peer of " + std::to_string(size());
    return open_[remote.rank] ? "peer " + std::to_string(remote.rank) + " is connected already" : "";
  }
  /// Why an open connection is not the one that it should be; also two of one rank that came at the same time.
  std::string stranger(const connection& c) const {
    const hello& r = c.remote();
    if (const std::string why = refusal(r); !why.empty()) return why;
    for (const call& d : dialled_)
      if (d.c.get() == &c && d.rank != r.rank)
        return "peer " + std::to_string(d.rank) + " was expected here, not peer " + std::to_string(r.rank);
    return "";
  }
  void add(connection& c) { open_[c.remote().rank] = &c; }
  /// Its connection is closed. False for a stranger's, whom this side turned away.
  bool remove(const connection& c) {
    bool mine = std::any_of(dialled_.begin(), dialled_.end(), [&](const call& d) { return d.c.get() == &c; });
    for (auto& o : open_)
      if (o == &c) {
        o = nullptr;
        mine = true;
      }
    return mine;
  }

  /// The broker has said who is where: dials those of lower rank. Errors: protocol, network.
  void meet(roster r, connection_handler& h) {
    if (r.members.size() != open_.size()) fail(errc::protocol, "the broker's list has ", r.members.size(), " peers, expected ", open_.size());
    for (u32 i = 0; i < r.members.size(); ++i)
      if (r.members[i].rank != i) fail(errc::protocol, "entry ", i, " of the broker's list has rank ", r.members[i].rank);
    roster_ = std::move(r);
    pace();
    for (u32 i = 0; i < self_; ++i) {
      const auto& m = roster_.members[i];
      dialled_.push_back({net_.connect({parse_address(m.address), m.name, timeout_, true}, h), i});
    }
  }

  /// What left for a peer since begin_counting(), with headers and heartbeats.
  struct sent {
    u64 wire = 0;
    nanoseconds busy = 0;
  };
  /// The first step begins: probes and the like are not its own.
  void begin_counting() {
    before_.assign(size(), {});
    for (u32 r = 0; r < size(); ++r) before_[r] = sent_to(r);
  }
  sent sent_to(u32 rank) const {
    if (!open_[rank]) return {};
    const connection_statistics s = open_[rank]->statistics();
    const sent before = before_.empty() ? sent{} : before_[rank];
    return {s.wire_sent - before.wire, s.busy_sending - before.busy};
  }

  void close_all(errc code, const std::string& reason) {
    for (connection* c : open_)
      if (c && c->is_open()) c->close(code, reason);
    for (const call& d : dialled_)
      if (!d.c->is_open()) d.c->abort(code, reason);
  }

 private:
  struct call {
    connection_ptr c;
    u32 rank;
  };
  void pace() {
    for (const auto& p : roster_.paces)
      if (paces_ && p.from == self_ && p.to < size()) {
        const std::string& name = roster_.members[p.to].name;
        paces_->set(name, {.latency = p.latency, .bits_per_second = p.bits_per_second});
        // It may have been the faster one to hear who is where.
        if (connection* c = open_[p.to]) c->pace(paces_->find(name).on, p.latency);
      }
  }

  u32 self_;
  transport& net_;
  paced_links* paces_;
  nanoseconds timeout_;
  roster roster_;
  std::vector<call> dialled_;
  std::vector<connection*> open_;  ///< by rank
  std::vector<sent> before_;       ///< by rank: what had left when counting began
};

}  // namespace fusionllm::inline v0
