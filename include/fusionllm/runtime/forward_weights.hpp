// SPDX-License-Identifier: Apache-2.0
// Weights and nothing else: the parameters that some nodes read, for inference. A trainer's have gradients and the
// optimizer's state beside them (runtime/parameter_store.hpp).
#pragma once

#include <span>
#include <utility>

#include "../core/types.hpp"
#include "../graph/node.hpp"
#include "memory.hpp"

namespace fusionllm::inline v0 {

class forward_weights {
 public:
  /// Of the nodes that `reads` marks. They are zeros. Errors: resource.
  forward_weights(const graph_view& g, const flags& reads, dtype real, device_memory* memory = nullptr) : memory_(memory), at_(g.params.size(), none), bytes_(g.params.size(), 0) {
    u64 total = 0;
    for (int i = 0; i < g.size(); ++i)
      for (int p : g.nodes[std::size_t(i)].params) {
        if (!reads[std::size_t(i)] || p < 0 || held(p)) continue;
        bytes_[std::size_t(p)] = g.params[std::size_t(p)].count() * size_of(real);
        at_[std::size_t(p)] = total;
        total += aligned(bytes_[std::size_t(p)]);
        held_.push_back(p);
      }
    block_ = memory_block(total);
  }

  bool held(int parameter) const { return at_[std::size_t(parameter)] != none; }
  /// By the first node that reads them.
  std::span<const int> all_held() const { return held_; }
  /// For the host to fill.
  std::span<std::byte> of(int parameter) const {
    current_ = false;
    return {block_.data() + at_[std::size_t(parameter)], std::size_t(bytes_[std::size_t(parameter)])};
  }
  /// For the device's kernels.
  std::byte* on_device(int parameter) {
    if (!memory_) return block_.data() + at_[std::size_t(parameter)];
    if (!std::exchange(current_, true)) {
      if (!there_.data()) there_ = memory_block(block_.size(), memory_);
      memory_->upload(there_.data(), block_.data(), block_.size());
    }
    return there_.data() + at_[std::size_t(parameter)];
  }
  u64 bytes() const { return block_.size(); }

 private:
  static constexpr u64 none = ~u64(0);
  device_memory* memory_;
  std::vector<u64> at_, bytes_;  ///< by parameter
  std::vector<int> held_;
  memory_block block_, there_;
  mutable bool current_ = false;  ///< the device has what the host has written
};

}  // namespace fusionllm::inline v0
