// SPDX-License-Identifier: Apache-2.0
// Virtual time: a queue of events whose clock jumps from one to the next. Single-threaded; nothing in it depends on
// the machine, so one sequence of calls always gives the same run.
#pragma once

#include "timer_queue.hpp"

namespace fusionllm::inline v0 {

class virtual_reactor final : public reactor {
 public:
  nanoseconds now() const override { return now_; }
  timer_id at(nanoseconds when, task t) override { return queue_.add(when < now_ ? now_ : when, std::move(t)); }
  bool cancel(timer_id id) override { return queue_.cancel(id); }
  void post(task t) override { queue_.add(now_, std::move(t)); }

  bool run_one(nanoseconds deadline) override {
    const nanoseconds next = queue_.next();
    if (next > deadline || queue_.empty()) {
      if (deadline != forever && deadline > now_) now_ = deadline;
      return false;
    }
    now_ = next;
    task t = queue_.pop();
    ++events_;
    t();
    return true;
  }
  void run() override {
    while (!stopped_ && run_one(forever)) {
    }
    stopped_ = false;
  }
  void stop() override { stopped_ = true; }

  bool idle() { return queue_.empty(); }
  /// Events run so far: equal runs have equal numbers.
  u64 events() const { return events_; }

 private:
  timer_queue queue_;
  nanoseconds now_ = 0;
  u64 events_ = 0;
  bool stopped_ = false;
};

}  // namespace fusionllm::inline v0
