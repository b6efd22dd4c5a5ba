// SPDX-License-Identifier: Apache-2.0
// Which parts of a whole state have still to come from which peer. Their memory is the broker's process's.
#pragma once

#include "state_parts.hpp"

namespace fusionllm::inline v0 {

class collected_state {
 public:
  /// `owners` stay.
  void begin(u64 step, const graph_view& g, const std::vector<parameter_owners>& owners, dtype real, u32 peers) {
    step_ = step;
    owners_ = &owners;
    sizes_.clear();
    for (const auto& p : g.params) sizes_.push_back(p.count() * size_of(real));
    owed_.assign(peers, 0);
    missing_ = 0;
    for (const auto& o : owners) {
      if (o.primary < 0) continue;  // nothing uses it
      owed_[std::size_t(o.primary)] += state_parts;
      missing_ += state_parts;
    }
    has_.assign(state_parts * sizes_.size(), u8(0));
  }
  u64 step() const { return step_; }
  bool complete() const { return missing_ == 0; }
  bool owes(u64 rank) const { return rank < owed_.size() && owed_[std::size_t(rank)] > 0; }

  /// A part begins to come from `c`. Errors: protocol, for one that was not asked of it.
  void expect(const connection& c, const frame_header& h) {
    if (complete() || h.edge >= sizes_.size() || h.micro_batch >= state_parts || h.total_length != sizes_[h.edge] ||
        (*owners_)[h.edge].primary != int(c.user))
      not_asked(c, h);
    if (std::exchange(has_[h.edge * state_parts + h.micro_batch], u8(1)))
      fail(errc::protocol, c.label(), " sends part ", h.micro_batch, " of parameter ", h.edge, " twice");
  }
  [[noreturn]] static void not_asked(const connection& c, const frame_header& h) {
    fail(errc::protocol, c.label(), " sends ", h.total_length, " bytes of part ", h.micro_batch, " of parameter ", h.edge,
         ", which was not asked of it");
  }
  /// A part that was placed is here.
  void came(u64 rank) {
    --owed_[std::size_t(rank)];
    --missing_;
  }

 private:
  u64 step_ = 0;
  const std::vector<parameter_owners>* owners_ = nullptr;
  std::vector<u64> sizes_;  ///< of a part, by parameter
  std::vector<u64> owed_;   ///< parts, by rank
  flags has_;               ///< by parameter and part
  u64 missing_ = 0;
};

}  // namespace fusionllm::inline v0
