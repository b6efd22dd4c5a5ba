// SPDX-License-Identifier: Apache-2.0
// What a broker tells its process of a run, and what it asks of it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../estimate/cost_model.hpp"
#include "../runtime/skipping.hpp"
#include "../schedule/plan.hpp"

namespace fusionllm::inline v0 {

/// One step of the whole run.
struct cluster_step {
  struct link {
    int from = 0, to = 0;
    u64 messages = 0, raw = 0, encoded = 0, wire = 0;  ///< in this step; wire: with headers and heartbeats
    nanoseconds busy = 0;
  };
  u64 step = 0;  ///< steps done, this one included
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  bool skipped = false;
  std::string reason;         ///< why it was skipped, as the end of a sentence
  nanoseconds elapsed = 0;    ///< the longest of any peer, from its first task to the end of its update
  nanoseconds predicted = 0;
  std::vector<link> links;
};

class broker_host {
 public:
  virtual ~broker_host() = default;
  virtual void on_text(const std::string& line) { (void)line; }
  virtual void on_plan(const plan& p, const cost_model& costs) { (void)p, (void)costs; }
  virtual void on_step(const cluster_step& s) = 0;
  /// A complete state: `part(parameter, 0)` is its weights, 1 and 2 the optimizer's.
  virtual void on_state(u64 step, const std::function<std::span<const std::byte>(int, int)>& part) = 0;
  /// Asked when the run resumes: the same, of the state to resume from.
  virtual std::span<const std::byte> saved(int parameter, int part) { return (void)parameter, (void)part, std::span<const std::byte>{}; }
  /// The losses of the steps so far, which belong to the state that follows; and those of the state to resume from.
  virtual void on_history(const loss_history& h) { (void)h; }
  virtual loss_history saved_history() { return {}; }
  virtual void on_end(const error& why) = 0;
};

}  // namespace fusionllm::inline v0
