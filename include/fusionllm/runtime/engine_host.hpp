// SPDX-License-Identifier: Apache-2.0
// What an engine needs of the world, and what it tells it.
#pragma once

#include <span>

#include "../core/error.hpp"
#include "messages.hpp"

namespace fusionllm::inline v0 {

struct step_report {
  u64 step = 0;
  step_verdict verdict;
  double learning_rate = 0;
  nanoseconds elapsed = 0;    ///< on the reactor's clock
  nanoseconds computed = 0;   ///< in tasks, as measured on this machine
};

/// Bytes sent to one peer since the run began.
struct link_traffic {
  int to = -1;
  u64 messages = 0;
  u64 raw = 0;
  u64 encoded = 0;
};

class engine_host {
 public:
  virtual ~engine_host() = default;
  /// Sends a message; `payload` stays until sent(tag) is called on the engine.
  virtual void send(int to, const frame_header& h, std::span<const std::byte> payload, u64 tag) = 0;
  virtual void on_step(const step_report& r) = 0;
  virtual void on_failure(const error& e) = 0;
};

}  // namespace fusionllm::inline v0
