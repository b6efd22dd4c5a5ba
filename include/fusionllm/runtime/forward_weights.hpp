// SPDX-License-Identifier: Apache-2.0
// Weights and nothing else: the parameters that some nodes read, for inference. A trainer's have gradients and the
// optimizer's state beside them (runtime/parameter_store.hpp).
#pragma once

#include <span>

#include "../core/types.hpp"
#include "../graph/node.hpp"
#include "memory.hpp"

namespace fusionllm::inline v0 {

class forward_weights {
 public:
  /// Of the nodes that `reads` marks. They are zeros. Errors: resource.
  forward_weights(const graph_view& g, const flags& reads, dtype real) : at_(g.params.size(), none), bytes_(g.params.size(), 0) {
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
  std::span<std::byte> of(int parameter) const {
    return {block_.data() + at_[std::size_t(parameter)], std::size_t(bytes_[std::size_t(parameter)])};
  }
  u64 bytes() const { return block_.size(); }

 private:
  static constexpr u64 none = ~u64(0);
  std::vector<u64> at_, bytes_;  ///< by parameter
  std::vector<int> held_;
  memory_block block_;
};

}  // namespace fusionllm::inline v0
