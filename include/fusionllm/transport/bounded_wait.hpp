// SPDX-License-Identifier: Apache-2.0
// A wait that ends. It tells a late event from a late reactor: when its timer fires late (the process was stopped, or
// busy), what arrived meanwhile is looked at before the wait is given up.
#pragma once

#include "reactor.hpp"

namespace fusionllm::inline v0 {

class bounded_wait {
 public:
  explicit bounded_wait(reactor& r) : reactor_(r) {}
  ~bounded_wait() { cancel(); }
  bounded_wait(const bounded_wait&) = delete;
  bounded_wait& operator=(const bounded_wait&) = delete;

  /// Calls `expired` at `when`, unless it is set again or cancelled before.
  void until(nanoseconds when, reactor::task expired) {
    cancel();
    expired_ = std::move(expired);
    graces_ = 10;
    arm(when);
  }
  void cancel() {
    if (timer_) reactor_.cancel(timer_);
    timer_ = {};
  }
  explicit operator bool() const { return bool(timer_); }

 private:
  static constexpr nanoseconds late = 50 * millisecond, grace = 100 * millisecond;

  void arm(nanoseconds when) {
    timer_ = reactor_.at(when, [this, when] {
      timer_ = {};
      if (reactor_.now() - when > late && graces_-- > 0) return arm(reactor_.now() + grace);
      reactor::task run = std::move(expired_);
      run();
    });
  }

  reactor& reactor_;
  reactor::task expired_;
  timer_id timer_;
  int graces_ = 0;
};

}  // namespace fusionllm::inline v0
