// SPDX-License-Identifier: Apache-2.0
// The one thread on which a node's protocol lives: time, timers and posted work. Protocol code knows only this
// interface; `asio_reactor` gives it real time and sockets, `virtual_reactor` a deterministic queue of events.
#pragma once

#include <utility>

#include "../core/clock.hpp"
#include "callback.hpp"

namespace fusionllm::inline v0 {

/// Names a pending timer; the default names none.
struct timer_id {
  u64 value = 0;
  explicit operator bool() const { return value != 0; }
  bool operator==(const timer_id&) const = default;
};

class reactor : public clock {
 public:
  using task = callback<void()>;
  static constexpr nanoseconds forever = INT64_MAX;

  /// Runs `t` at `when` (at once when that has passed). Equal times run in the order of the calls.
  virtual timer_id at(nanoseconds when, task t) = 0;
  /// False when it has run or was cancelled before.
  virtual bool cancel(timer_id id) = 0;
  /// Runs `t` soon, never inside this call. The only function, with stop(), that other threads may call (and those
  /// only on a reactor of real time).
  virtual void post(task t) = 0;
  /// Waits no longer than until `deadline` for an event and runs it. False when none came.
  virtual bool run_one(nanoseconds deadline) = 0;
  /// Runs until stop() (returns at once when that came before); on virtual time also until nothing is left to do.
  virtual void run() = 0;
  virtual void stop() = 0;

  timer_id after(nanoseconds delay, task t) { return at(now() + delay, std::move(t)); }

  /// Runs every event due up to `deadline`.
  void run_until(nanoseconds deadline) {
    while (run_one(deadline)) {
    }
  }
  /// Runs events while `pending()` holds. False when `timeout` passed first.
  template <class Predicate>
  bool run_while(Predicate&& pending, nanoseconds timeout) {
    const nanoseconds deadline = now() + timeout;
    while (pending())
      if (!run_one(deadline) && now() >= deadline) return !pending();
    return true;
  }
};

}  // namespace fusionllm::inline v0
