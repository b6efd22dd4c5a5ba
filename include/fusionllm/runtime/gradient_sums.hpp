// SPDX-License-Identifier: Apache-2.0
// The gradients of a step once its tasks are done. First the chain: a replica adds its groups, in order, to what the
// replica before it sends, use by use, and passes the sum on; the last one has the total of the use. Then the totals: the
// primary owner of a parameter adds those of all its uses in graph order. `prepare_*` and what sends run on the reactor,
// the others on the device's thread, where messages at hand are not looked at: they may change.
#pragma once

#include <algorithm>
#include <cmath>

#include "message_box.hpp"
#include "outgoing_messages.hpp"

namespace fusionllm::inline v0 {

class gradient_sums {
 public:
  gradient_sums(const peer_share& share, const device_binding& device, parameter_store& store, stage_compute& compute, message_box& box,
                outgoing_messages& out)
      : share_(share), device_(device), store_(store), compute_(compute), box_(box), out_(out), arrived_(device.context->memory()),
        leaving_(device.context->memory()), found_(device.context->memory(), (std::max)(store.uses().size(), store.parameters().size())),
        sums_(device.context->memory(), store.parameters().size()) {}

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
    arrivals_.clear();
    for (auto& u : store_.uses()) {
      if (!share_.updates(u.parameter)) continue;
      const i64 n = share_.count_of(u.parameter);
      if (share_.replica > 0) {
        const auto* m = from_previous(u);
        if (m->buffer >= 0) additions_.push_back({u.groups[0], arrival_of(*m), u.groups[0], n});
        else note(u.parameter, int(m->header.source));
      }
      for (std::size_t i = 1; i < u.groups.size(); ++i) additions_.push_back({u.groups[0], u.groups[0], u.groups[i], n});
    }
  }
  /// What is to be sent is searched first.
  void add_groups() {
    add_up();
    const auto& uses = store_.uses();
    const auto leaves = [&](const local_use& u) { return share_.updates(u.parameter) && destination_of(u) != share_.self; };
    u64 bytes = 0;
    for (const auto& u : uses)
      if (leaves(u)) bytes += aligned(share_.bytes_of(u.parameter));
    leaving_.begin(bytes);
    found_.clear();
    values_.assign(uses.size(), nullptr);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (!leaves(uses[i])) continue;
      search(uses[i].groups[0], uses[i].parameter, i);
      values_[i] = leaving_.copy(uses[i].groups[0], share_.bytes_of(uses[i].parameter));
    }
    if (bytes) settle(*device_.context);
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (found_[i]) note(uses[i].parameter, share_.self);
  }
  void send_chain() {
    for (std::size_t i = 0; i < store_.uses().size(); ++i) {
      const local_use& u = store_.uses()[i];
      if (!share_.updates(u.parameter)) continue;
      if (share_.replica > 0) box_.drop(*from_previous(u));
      const int to = destination_of(u);
      if (to == share_.self) continue;
      out_.send_copy(out_.header(frame_kind::gradient, box_.step(), to, u32(u.parameter), gradient_slot(u.index, share_.last_replica())),
                     {values_[i], std::size_t(found_[i] ? 0 : share_.bytes_of(u.parameter))});
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
    arrivals_.clear();
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
    summed_.clear();
    found_.clear();
    auto& all = store_.parameters();
    for (std::size_t i = 0; i < all.size(); ++i) {
      local_parameter& x = all[i];
      if (!x.primary || !share_.updates(x.parameter) || !x.gradient) continue;
      x.gradient = there(x.gradient);
      if (!share_.parameter(x.parameter).trained()) {
        search(x.gradient, x.parameter, i);
        continue;
      }
      summed_.push_back({nullptr, x.gradient, nullptr, nullptr, share_.count_of(x.parameter), false});
      squares.push_back({u32(x.parameter), 0});
    }
    device_.vectors->sums_of_squares(*device_.context, summed_, sums_.data());
    settle(*device_.context);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (found_[i]) note(all[i].parameter, share_.self);
    for (std::size_t i = 0; i < squares.size(); ++i) {
      squares[i].value = sums_[i];
      if (!std::isfinite(sums_[i])) note(int(squares[i].index), share_.self);
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
    if (m->buffer >= 0) return arrival_of(*m);
    note(parameter, int(m->header.source));
    return nullptr;
  }
  void note(int parameter, int peer) {
    compute_.note({fault_kind::gradient, fault::no, u32(share_.owners_at(parameter).uses.front().node), u32(parameter), u32(peer)});
  }
  void search(const std::byte* x, int parameter, std::size_t place) {
    device_.vectors->search(*device_.context, share_.real, x, share_.count_of(parameter), found_.data() + place);
  }
  /// What came in a message, until add_up() has it on the device.
  std::byte* arrival_of(const message_box::message& m) {
    std::byte* bytes = box_.memory_of(m);
    arrivals_.push_back({bytes, box_.bytes_of(m).size(), bytes});
    return bytes;
  }
  std::byte* there(const std::byte* x) const {
    for (const arrival& a : arrivals_)
      if (a.bytes == x) return a.there;
    return const_cast<std::byte*>(x);
  }
  void add_up() {
    arrived_.begin();
    for (arrival& a : arrivals_) a.there = arrived_.copy(a.bytes, a.count);
    for (const addition& x : additions_) device_.vectors->add(*device_.context, share_.real, there(x.out), there(x.a), there(x.b), x.n);
  }

  const peer_share& share_;
  device_binding device_;
  parameter_store& store_;
  stage_compute& compute_;
  message_box& box_;
  outgoing_messages& out_;
  std::vector<addition> additions_;
  struct arrival {
    std::byte* bytes;
    u64 count;
    std::byte* there;  ///< on the device
  };
  std::vector<arrival> arrivals_;
  device_copies arrived_;
  host_copies leaving_;
  std::vector<const std::byte*> values_;  ///< by use of a parameter: what is sent
  shared_numbers<u32> found_;             ///< what is not finite, and is not sent: by use, then by parameter
  std::vector<parameter_update> summed_;
  shared_numbers<double> sums_;
};

}  // namespace fusionllm::inline v0
