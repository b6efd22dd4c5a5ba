// SPDX-License-Identifier: Apache-2.0
// What a broker tells its process of a run, and what it asks of it.
#pragma once

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
  /// Something that its user should know and that does not end the run.
  virtual void on_warning(const std::string& line) { on_text(line); }
  virtual void on_plan(const plan& p, const cost_model& costs) { (void)p, (void)costs; }
  virtual void on_step(const cluster_step& s) { (void)s; }
  virtual void on_end(const error& why) = 0;

  // The state of the run: part 0 of a parameter is its weights, 1 and 2 are the optimizer's.
  /// Asked when the run resumes, part by part, once for each peer that is sent it: the state to resume from. The memory
  /// must stay until the next call only.
  virtual std::span<const std::byte> saved(int parameter, int part) { return (void)parameter, (void)part, std::span<const std::byte>{}; }
  /// The losses of the steps before that state.
  virtual loss_history saved_history() { return {}; }
  /// Asked until it is true before the state of a step is collected: may the memory of the one before be overwritten?
  virtual bool can_collect() { return true; }
  /// Memory for a part of the state, of so many bytes, until on_state.
  virtual std::span<std::byte> state_memory(int parameter, int part, std::size_t bytes) { return (void)parameter, (void)part, (void)bytes, std::span<std::byte>{}; }
  /// All parts are there. `losses`: of the steps before it.
  virtual void on_state(u64 step, const loss_history& losses) { (void)step, (void)losses; }
};

}  // namespace fusionllm::inline v0
