// SPDX-License-Identifier: Apache-2.0
// The gradients of a step once its tasks are done. First the chain: a replica adds its groups, in order, to what the
// replica before it sends, use by use, and passes the sum on; the last one has the total of the use. Then the totals: the
// primary owner of a parameter adds those of all its uses in graph order. `prepare_*` and what sends run on the reactor,
// the others on the device's thread, where messages at hand are not looked at: they may change.
#pragma once

#include <cmath>

#include "message_box.hpp"
#include "outgoing_messages.hpp"

namespace fusionllm::inline v0 {

class gradient_sums {
 public:
  gradient_sums(const peer_share& share, const device_binding& device, parameter_store& store, stage_compute& compute, message_box& box,
                outgoing_messages& out)
      : share_(share), device_(device), store_(store), compute_(compute), box_(box), out_(out) {}

  // --- the chain
  /// Whether everything from the replica before this one is here.
  bool chain_is_here() const {
    if (share_.replica > 0)
      for (const auto& u : store_.uses())
        if (share_.updates(u.parameter) && !from_previous(u)) return false;
    return true;
  }
  void prepare_chain() {
    additions_.clear();
    for (auto& u : store_.uses()) {
      if (!share_.updates(u.parameter)) continue;
      const i64 n = share_.count_of(u.parameter);
      if (share_.replica > 0) {
        const auto* m = from_previous(u);
        if (m->buffer >= 0) additions_.push_back({u.groups[0], box_.bytes_of(*m).data(), u.groups[0], n});
        else note(u.parameter, int(m->header.source));
      }
      for (std::size_t i = 1; i < u.groups.size(); ++i) additions_.push_back({u.groups[0], u.groups[0], u.groups[i], n});
    }
  }
  /// What is to be sent is searched first.
  void add_groups() {
    add_up();
    poisoned_.clear();
    for (const auto& u : store_.uses()) {
      const bool bad = share_.updates(u.parameter) && destination_of(u) != share_.self && !finite(u.groups[0], u.parameter);
      if (bad) note(u.parameter, share_.self);
      poisoned_.push_back(bad);
    }
  }
  void send_chain() {
    for (std::size_t i = 0; i < store_.uses().size(); ++i) {
      const local_use& u = store_.uses()[i];
      if (!share_.updates(u.parameter)) continue;
      if (share_.replica > 0) box_.drop(*from_previous(u));
      const int to = destination_of(u);
      if (to == share_.self) continue;
      out_.send_copy(out_.header(frame_kind::gradient, box_.step(), to, u32(u.parameter), gradient_slot(u.index, share_.last_replica())),
                     {u.groups[0], std::size_t(poisoned_[i] ? 0 : share_.bytes_of(u.parameter))});
    }
  }

  // --- totals
  struct owed {
    int parameter = -1;  ///< -1: none
    int by = -1;         ///< peer
    explicit operator bool() const { return parameter >= 0; }
  };
  /// A total that has not come yet.
  owed missing_total() const {
    for (const auto& x : store_.parameters()) {
      if (!x.primary || !share_.updates(x.parameter)) continue;
      for (int u = 0; u < uses_of(x.parameter); ++u)
        if (!share_.forms_total(x.parameter, u) && !total_message(x.parameter, u)) return {x.parameter, share_.former_of(x.parameter, u)};
    }
    return {};
  }
  void prepare_totals() {
    additions_.clear();
    for (auto& x : store_.parameters()) {
      if (!x.primary || !share_.updates(x.parameter)) continue;
      x.gradient = nullptr;
      for (int u = 0; u < uses_of(x.parameter); ++u) {
        std::byte* const total = total_of(x.parameter, u);
        if (!total) continue;
        if (x.gradient) additions_.push_back({x.gradient, x.gradient, total, share_.count_of(x.parameter)});
        else x.gradient = total;
      }
    }
  }
  /// Adds and gives the squares of what this peer is the primary owner of.
  void add_uses(std::vector<summand>& squares) {
    add_up();
    squares.clear();
    for (const auto& x : store_.parameters()) {
      if (!x.primary || !share_.updates(x.parameter) || !x.gradient) continue;
      if (!share_.parameter(x.parameter).trained()) {
        if (!finite(x.gradient, x.parameter)) note(x.parameter, share_.self);
        continue;
      }
      const double sum = device_.vectors->sum_of_squares(*device_.context, x.gradient, share_.count_of(x.parameter));
      if (!std::isfinite(sum)) note(x.parameter, share_.self);
      squares.push_back({u32(x.parameter), sum});
    }
  }
  /// The totals that came from others have been used.
  void drop_totals() {
    for (const auto& x : store_.parameters()) {
      if (!x.primary || !share_.updates(x.parameter)) continue;
      for (int u = 0; u < uses_of(x.parameter); ++u)
        if (!share_.forms_total(x.parameter, u)) box_.drop(*total_message(x.parameter, u));
    }
  }

 private:
  struct addition {
    std::byte* out;
    const std::byte *a, *b;
    i64 n;
  };

  const message_box::message* from_previous(const local_use& u) const {
    return box_.find(frame_kind::gradient, u32(u.parameter), gradient_slot(u.index, false));
  }
  const message_box::message* total_message(int parameter, int use) const {
    return box_.find(frame_kind::gradient, u32(parameter), gradient_slot(use, true));
  }
  int uses_of(int parameter) const { return int(share_.owners_at(parameter).uses.size()); }
  /// Where the sum of a use goes.
  int destination_of(const local_use& u) const {
    return share_.last_replica() ? share_.owners_at(u.parameter).primary : share_.replicas[std::size_t(share_.replica) + 1];
  }
  /// Null for one that was not finite.
  std::byte* total_of(int parameter, int use) {
    if (share_.forms_total(parameter, use)) return store_.find_use(share_.owners_at(parameter).uses[std::size_t(use)])->groups[0];
    const auto* m = total_message(parameter, use);
    if (m->buffer >= 0) return box_.memory_of(*m);
    note(parameter, int(m->header.source));
    return nullptr;
  }
  void note(int parameter, int peer) {
    compute_.note({fault_kind::gradient, fault::no, u32(share_.owners_at(parameter).uses.front().node), u32(parameter), u32(peer)});
  }
  bool finite(const std::byte* x, int parameter) { return device_.vectors->finite(*device_.context, x, share_.count_of(parameter)); }
  void add_up() {
    for (const addition& x : additions_) device_.vectors->add(*device_.context, x.out, x.a, x.b, x.n);
  }

  const peer_share& share_;
  device_binding device_;
  parameter_store& store_;
  stage_compute& compute_;
  message_box& box_;
  outgoing_messages& out_;
  std::vector<addition> additions_;
  flags poisoned_;  ///< by use of a parameter: its gradient is not finite, and is not sent
};

}  // namespace fusionllm::inline v0
