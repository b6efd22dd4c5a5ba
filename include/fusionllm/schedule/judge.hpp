// SPDX-License-Identifier: Apache-2.0
// Compares candidate plans by replaying a step of each. It remembers the fastest one that can run and uses enough
// peers, and why the first one could not.
#pragma once

#include <map>

#include "predict.hpp"

namespace fusionllm::inline v0 {

inline int peers_used(const plan& p) {
  int n = 0;
  for (const auto& team : p.peers) n += int(team.size());
  return n;
}

class plan_judge {
 public:
  explicit plan_judge(const step_profile& f, int least_peers = 1) : f_(f), least_peers_(least_peers) {}

  /// True when it is the fastest so far; a plan that was shown before is not replayed again.
  bool consider(const plan& p) {
    last_ = never;
    if (peers_used(p) < least_peers_) return false;
    const auto [known, fresh] = seen_.insert({{p.stage_of, p.peers}, never});
    if (!fresh) {
      last_ = known->second;
      return false;
    }
    const program prog = compile(f_.graph(), p);
    const std::string why = obstacle(f_, p, prog);
    if (!why.empty()) {
      if (why_.empty()) why_ = why;
      return false;
    }
    no_record nothing;
    step_replay<> replay(f_, p, prog, nothing);
    known->second = last_ = replay.run();
    replayed_tasks_ += prog.tasks.size() * std::size_t(p.micro_batches);
    if (found_ && last_ >= best_.predicted_step) return false;
    best_ = p;
    best_.predicted_step = last_;
    found_ = true;
    return true;
  }

  bool found() const { return found_; }
  const plan& best() const { return best_; }
  /// Step of the plan considered last; `never` when it cannot run or uses too few peers.
  nanoseconds last() const { return last_; }
  const std::string& first_obstacle() const { return why_; }
  /// A measure of the work done that does not depend on the machine.
  std::size_t replayed_tasks() const { return replayed_tasks_; }

 private:
  const step_profile& f_;
  int least_peers_;
  bool found_ = false;
  plan best_;
  nanoseconds last_ = never;
  std::string why_;
  std::size_t replayed_tasks_ = 0;
  std::map<std::pair<std::vector<int>, std::vector<std::vector<int>>>, nanoseconds> seen_;
};

}  // namespace fusionllm::inline v0
