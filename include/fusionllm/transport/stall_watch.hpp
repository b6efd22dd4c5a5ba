// SPDX-License-Identifier: Apache-2.0
// Notices that a frame does not move on, in or out. Its timer exists only while something is under way.
#pragma once

#include "bounded_wait.hpp"

namespace fusionllm::inline v0 {

class stall_watch {
 public:
  enum class direction { out, in };

  stall_watch(reactor& r, nanoseconds bound) : reactor_(r), wait_(r), bound_(bound) {}

  nanoseconds bound() const { return bound_; }
  /// The last time that something left or arrived.
  void moved(direction d, nanoseconds when) { (d == direction::out ? out_ : in_) = when; }
  nanoseconds last(direction d) const { return d == direction::out ? out_ : in_; }

  /// Says what is under way now. `stalled(direction)` is called when it stood still for the bound.
  template <class Stalled>
  void update(bool out, bool in, Stalled&& stalled) {
    out_busy_ = out;
    in_busy_ = in;
    if (!out && !in) return wait_.cancel();
    if (!wait_) arm(std::forward<Stalled>(stalled), reactor_.now() + bound_);
  }
  void cancel() { wait_.cancel(); }

 private:
  template <class Stalled>
  void arm(Stalled stalled, nanoseconds when) {
    wait_.until(when, [this, stalled]() mutable {
      const nanoseconds now = reactor_.now();
      if (out_busy_ && now - out_ >= bound_) return stalled(direction::out);
      if (in_busy_ && now - in_ >= bound_) return stalled(direction::in);
      const nanoseconds oldest = !out_busy_ ? in_ : !in_busy_ || out_ < in_ ? out_ : in_;
      if (out_busy_ || in_busy_) arm(stalled, oldest + bound_);
    });
  }

  reactor& reactor_;
  bounded_wait wait_;
  nanoseconds bound_;
  nanoseconds out_ = 0, in_ = 0;
  bool out_busy_ = false, in_busy_ = false;
};

}  // namespace fusionllm::inline v0
