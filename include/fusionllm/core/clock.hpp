// SPDX-License-Identifier: Apache-2.0
// Where time comes from. Nothing that keeps a protocol asks the machine for the time: it is handed a `clock`, so that
// the same code runs on real time and on virtual time.
#pragma once

#include <chrono>

#include "types.hpp"

namespace fusionllm::inline v0 {

/// A monotonic clock. Only differences mean something.
class clock {
 public:
  virtual ~clock() = default;
  virtual nanoseconds now() const = 0;
};

/// The machine's monotonic clock.
class machine_clock : public clock {
 public:
  nanoseconds now() const override { return read(); }
  static nanoseconds read() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

/// Stands still until it is told otherwise.
class manual_clock : public clock {
 public:
  nanoseconds now() const override { return now_; }
  void advance(nanoseconds by) { now_ += by; }
  void set(nanoseconds to) { now_ = to; }

 private:
  nanoseconds now_ = 0;
};

}  // namespace fusionllm::inline v0
