// SPDX-License-Identifier: Apache-2.0
// Which steps peers may run: a few ahead of the slowest, and never past one at which the run rests, so that its state can be
// collected.
#pragma once

#include <algorithm>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

class step_grants {
 public:
  static constexpr u64 ahead = 4;

  /// The run has `steps`, and rests at multiples of `interval` and at the end; 0: only at the end.
  step_grants(u64 steps, u64 interval) : steps_(steps), interval_(interval) {}

  /// The run rests with so many steps done, and goes on.
  void go_on_from(u64 done) {
    granted_ = done;
    rest_ = interval_ ? (std::min)(steps_, (done / interval_ + 1) * interval_) : steps_;
  }
  /// Nothing more is granted: the run rests for the last time after what is.
  void stop() { stopped_ = true; }

  /// Steps below this may run.
  u64 granted() const { return granted_; }
  /// Grants more, now that everyone has done so many. False where there is nothing to grant.
  bool extend(u64 done) {
    const u64 until = (std::min)(rest(), done + ahead);
    if (until <= granted_) return false;
    granted_ = until;
    return true;
  }
  bool rests_at(u64 done) const { return done >= rest(); }
  bool ends_at(u64 done) const { return done >= steps_ || stopped_; }

 private:
  u64 rest() const { return stopped_ ? (std::min)(rest_, granted_) : rest_; }

  u64 steps_, interval_;
  u64 granted_ = 0, rest_ = 0;
  bool stopped_ = false;
};

}  // namespace fusionllm::inline v0
