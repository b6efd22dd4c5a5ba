// SPDX-License-Identifier: Apache-2.0
// Which task a peer runs next. The run and the simulator use this same class, so that what is predicted is what is
// done. Rules that keep results independent of timing: the tasks of one micro-batch run in their order, and a backward
// task takes micro-batches in ascending order.
#pragma once

#include <optional>

#include "program.hpp"

namespace fusionllm::inline v0 {

/// A task of one micro-batch.
struct task_ref {
  int task = -1;
  int micro_batch = -1;
};

class dispatcher {
 public:
  /// For the peer that is `replica` of `stage`. `slots` bounds the micro-batches in flight; 0: what the schedule needs.
  dispatcher(const program& prog, const plan& p, int stage, int replica, int slots = 0)
      : program_(&prog), order_(prog.tasks_of_stage[std::size_t(stage)]), kind_(p.schedule) {
    for (int m = 0; m < p.micro_batches; ++m)
      if (p.replica_of(stage, m) == replica) mine_.push_back(m);
    for (int t : order_) forward_tasks_ += !prog.tasks[std::size_t(t)].backward;
    slots_ = slots > 0 ? slots : default_slots();
    slots_ = (std::min)(slots_, int(mine_.size()));
    arrived_.resize(prog.edges.size() * std::size_t(p.micro_batches));
    progress_.resize(mine_.size());
    begin_step();
  }

  void begin_step() {
    std::fill(arrived_.begin(), arrived_.end(), u8(0));
    std::fill(progress_.begin(), progress_.end(), 0);
    running_ = false;
  }

  /// The message of `edge` for `micro_batch` is in this peer's memory.
  void arrived(int edge, int micro_batch) { arrived_[index(edge, micro_batch)] = 1; }

  /// The next task, which then counts as running; none if nothing may run or one is running.
  std::optional<task_ref> next() {
    if (running_) return std::nullopt;
    const bool backward_first = kind_ == schedule_kind::one_f_one_b;
    for (bool backward : {backward_first, !backward_first})
      if (auto t = find(backward)) {
        running_ = true;
        return t;
      }
    return std::nullopt;
  }

  void finished(task_ref t) {
    running_ = false;
    ++progress_[position(t.micro_batch)];
  }

  bool done() const {
    for (int p : progress_)
      if (p < int(order_.size())) return false;
    return true;
  }

  /// Micro-batches that may be in flight: forward begun, backward not finished.
  int slots() const { return slots_; }
  const std::vector<int>& micro_batches() const { return mine_; }

  /// What a peer that cannot go on waits for: the first missing edge of its earliest unfinished micro-batch.
  std::optional<task_ref> blocked_on_edge() const {
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      if (progress_[i] >= int(order_.size())) continue;
      for (int e : program_->tasks[std::size_t(order_[std::size_t(progress_[i])])].receives)
        if (!arrived_[index(e, mine_[i])]) return task_ref{e, mine_[i]};
    }
    return std::nullopt;
  }

 private:
  std::size_t index(int edge, int micro_batch) const {
    return std::size_t(micro_batch) * program_->edges.size() + std::size_t(edge);
  }
  std::size_t position(int micro_batch) const {
    return std::size_t(std::lower_bound(mine_.begin(), mine_.end(), micro_batch) - mine_.begin());
  }

  // 1F1B: as many as fill the way to the last stage and back. A slow link is one more station on that way.
  int default_slots() const {
    if (kind_ == schedule_kind::gpipe) return int(mine_.size());
    int last = 0;
    for (const auto& t : program_->tasks)
      if (!t.backward) last = (std::max)(last, t.depth);
    const int first = forward_tasks_ ? program_->tasks[std::size_t(order_[0])].depth : 0;
    return 2 * (last - first) + 1;
  }

  std::optional<task_ref> find(bool backward) const {
    int in_flight = 0;
    for (std::size_t i = 0; i < mine_.size(); ++i) in_flight += progress_[i] > 0 && progress_[i] < int(order_.size());
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      const int at = progress_[i];
      if (at >= int(order_.size()) || (at >= forward_tasks_) != backward) continue;
      if (at == 0 && in_flight >= slots_) continue;
      // Slots are reused in order, and gradients are summed in order: nobody overtakes within one task.
      if (i > 0 && progress_[i - 1] <= at) continue;
      const task& t = program_->tasks[std::size_t(order_[std::size_t(at)])];
      bool ready = true;
      for (int e : t.receives) ready = ready && arrived_[index(e, mine_[i])];
      if (ready) return task_ref{order_[std::size_t(at)], mine_[i]};
    }
    return std::nullopt;
  }

  const program* program_;
  std::vector<int> order_;
  schedule_kind kind_;
  int forward_tasks_ = 0;
  int slots_ = 1;
  std::vector<int> mine_;      ///< this replica's micro-batches, ascending
  std::vector<u8> arrived_;
  std::vector<int> progress_;  ///< per own micro-batch: tasks done
  bool running_ = false;
};

}  // namespace fusionllm::inline v0
