// SPDX-License-Identifier: Apache-2.0
// The parameters of one peer: weights of every parameter that its stage uses, the optimizer's state of those it is the
// primary owner of, and one gradient for each use and each of its micro-batch groups. Gradients are summed within a
// group as micro-batches end, across groups and uses at the end of a step, always in graph order. Where a device has memory
// of its own all of that lies there, and the host has copies of weights and state when it asks for them.
#pragma once

#include <utility>

#include "../schedule/owners.hpp"
#include "initialize.hpp"
#include "memory.hpp"
#include "host_copies.hpp"
#include "vector_functions.hpp"

namespace fusionllm::inline v0 {

/// One use of a parameter by this peer's stage.
struct local_use {
  int parameter = -1;
  int index = -1;                       ///< among all uses of the parameter
  use where{};
  std::vector<std::byte*> groups;       ///< a gradient for each group of this replica, in order
};

struct local_parameter {
  int parameter = -1;
  bool primary = false;
  std::byte* weight = nullptr;
  std::byte* m = nullptr;               ///< primary only
  std::byte* v = nullptr;
  std::byte* gradient = nullptr;        ///< primary only: the total, valid between the last backward and the update
  std::byte *host_weight = nullptr, *host_m = nullptr, *host_v = nullptr;  ///< see parameter_store::to_host
};

class parameter_store {
 public:
  parameter_store() = default;
  /// `real`: of weights.
  parameter_store(const graph_view& g, const plan& p, int self, dtype real, u64 seed, device_memory* memory = nullptr)
      : real_(real), memory_(memory) {
    const int stage = p.stage_of_peer(self);
    const auto owners = owners_of(g, p);
    const auto& replicas = p.peers[std::size_t(stage)];
    groups_ = p.groups / int(replicas.size());
    of_parameter_.assign(g.params.size(), -1);
    of_use_.assign(g.nodes.size() * max_params, -1);
    for (std::size_t i = 0; i < owners.size(); ++i) add(owners[i], int(i), stage, self);
    allocate(g);
    for (auto& x : parameters_) {
      const parameter_info& info = g.params[std::size_t(x.parameter)];
      if (real == dtype::f64) initialize(reinterpret_cast<double*>(x.host_weight), info, seed);
      else initialize(reinterpret_cast<float*>(x.host_weight), info, seed);
    }
    to_device();
    if (memory_) memory_->settle(), host_ = {};
    point_at_host(nullptr);
  }

  /// Brings what the host may look at, `host_weight` and so on, to where the device stands. Not while it works.
  void to_host() {
    if (!memory_ || written_) return;
    if (!host_.data()) host_ = memory_block(state_bytes_);
    point_at_host(host_.data());
    memory_->read(host_.data(), block_.data(), state_bytes_);
  }
  /// The host has changed something there, or will before the next step.
  void host_writes() {
    if (!memory_) return;
    if (!host_.data()) to_host();
    written_ = true;
  }
  /// Brings the device to where the host has written it.
  void to_device() {
    if (!std::exchange(written_, false)) return;
    memory_->upload(block_.data(), host_.data(), state_bytes_);
  }

  std::vector<local_parameter>& parameters() { return parameters_; }
  const std::vector<local_parameter>& parameters() const { return parameters_; }
  std::vector<local_use>& uses() { return uses_; }
  /// Null if this peer has no copy.
  local_parameter* find(int parameter) {
    const int i = of_parameter_[std::size_t(parameter)];
    return i < 0 ? nullptr : &parameters_[std::size_t(i)];
  }
  /// Null if this peer's stage has no such use.
  local_use* find_use(use where) {
    const int i = of_use_[use_place(where)];
    return i < 0 ? nullptr : &uses_[std::size_t(i)];
  }
  u64 bytes() const { return block_.size(); }

 private:
  static std::size_t use_place(use where) { return std::size_t(where.node) * max_params + std::size_t(where.slot); }

  void add(const parameter_owners& o, int parameter, int stage, int self) {
    bool mine = false;
    for (std::size_t u = 0; u < o.uses.size(); ++u) {
      if (o.stages[u] != stage) continue;
      mine = true;
      of_use_[use_place(o.uses[u])] = int(uses_.size());
      uses_.push_back({parameter, int(u), o.uses[u], std::vector<std::byte*>(std::size_t(groups_))});
    }
    if (!mine) return;
    of_parameter_[std::size_t(parameter)] = int(parameters_.size());
    parameters_.push_back({parameter, o.primary == self, nullptr, nullptr, nullptr, nullptr});
  }

  void allocate(const graph_view& g) {
    const auto bytes_of = [&](int parameter) {
      return aligned(g.params[std::size_t(parameter)].count() * size_of(real_));
    };
    u64 total = 0;
    for (const auto& x : parameters_) total += bytes_of(x.parameter) * (x.primary ? 3 : 1);
    for (const auto& u : uses_) total += bytes_of(u.parameter) * u.groups.size();
    block_ = memory_block(total, memory_);
    std::byte* at = block_.data();
    const auto take = [&](int parameter) {
      std::byte* p = at;
      at += bytes_of(parameter);
      return p;
    };
    for (auto& x : parameters_) {
      x.weight = take(x.parameter);
      if (!x.primary) continue;
      x.m = take(x.parameter);
      x.v = take(x.parameter);
    }
    state_bytes_ = u64(at - block_.data());
    for (auto& u : uses_)
      for (auto& group : u.groups) group = take(u.parameter);
    if (memory_) host_ = memory_block(state_bytes_), written_ = true;
    point_at_host(memory_ ? host_.data() : block_.data());
  }
  /// The host's copies begin at `base`; null: where they are.
  void point_at_host(std::byte* base) {
    for (auto& x : parameters_)
      for (auto [host, own] : {std::pair{&x.host_weight, x.weight}, {&x.host_m, x.m}, {&x.host_v, x.v}})
        *host = !own || (memory_ && !base) ? nullptr : (memory_ ? base : block_.data()) + (own - block_.data());
  }

  dtype real_ = dtype::f32;
  device_memory* memory_ = nullptr;
  int groups_ = 1;
  memory_block block_;
  memory_block host_;    ///< copies of weights and state, from when they were first asked for
  u64 state_bytes_ = 0;  ///< of weights and state, which lie before the gradients
  bool written_ = false;
  std::vector<local_parameter> parameters_;
  std::vector<local_use> uses_;
  std::vector<int> of_parameter_;
  std::vector<int> of_use_;  ///< by (node, slot)
};

}  // namespace fusionllm::inline v0
