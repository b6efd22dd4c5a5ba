// SPDX-License-Identifier: Apache-2.0
// What the leader makes of a step's summaries: the loss and the norm of the whole batch, whether the step counts, how
// everyone updates. Values are added in the order of parameters and of micro-batches, whoever sent them.
#pragma once

#include <cmath>

#include "messages.hpp"
#include "optimizer.hpp"

namespace fusionllm::inline v0 {

class step_judge {
 public:
  step_judge(std::vector<int> members, std::size_t parameters, int micro_batches, const optimizer_settings& o, const skip_settings& skipping,
             const loss_history& history)
      : members_(std::move(members)),
        summaries_(members_.size()),
        has_(members_.size(), 0),
        squares_(parameters),
        losses_(std::size_t(micro_batches)),
        optimizer_(o),
        skipping_(skipping),
        history_(history) {}

  const std::vector<int>& members() const { return members_; }
  /// Where the summary of a member goes, which it then has.
  step_summary& summary_of(int member) {
    const auto i = std::size_t(std::find(members_.begin(), members_.end(), member) - members_.begin());
    has_[i] = 1;
    return summaries_[i];
  }
  bool has_summary(std::size_t i) const { return has_[i]; }
  bool complete() const { return std::find(has_.begin(), has_.end(), u8(0)) == has_.end(); }

  /// Of all summaries, which then are those of the next step.
  step_verdict judge() {
    std::fill(has_.begin(), has_.end(), u8(0));
    std::fill(squares_.begin(), squares_.end(), 0.0);
    std::fill(losses_.begin(), losses_.end(), 0.0);
    step_verdict v;
    for (const auto& s : summaries_) {
      for (auto [index, value] : s.squares)
        if (index < squares_.size()) squares_[index] = value;
      for (auto [index, value] : s.losses)
        if (index < losses_.size()) losses_[index] = value;
      if (earlier(s.first, v.first)) v.first = s.first;
    }
    double squares = 0;
    for (double x : squares_) squares += x;
    for (double x : losses_) v.loss += x;
    v.gradient_norm = std::sqrt(squares);
    if (v.first || !std::isfinite(v.gradient_norm) || !std::isfinite(v.loss)) v.reason = skip_reason::not_finite;
    else if (history_.is_spike(v.loss, skipping_.spike_factor)) v.reason = skip_reason::loss_spike;
    if (v.reason == skip_reason::loss_spike) v.mean_loss = history_.mean();
    v.skipped = v.reason != skip_reason::none;
    v.gradient_scale = v.skipped ? 0 : clip_scale(optimizer_, v.gradient_norm);
    history_.add(v.loss, v.skipped);
    return v;
  }

  const loss_history& history() const { return history_; }
  void set_history(const loss_history& h) { history_ = h; }

 private:
  std::vector<int> members_;
  std::vector<step_summary> summaries_;  ///< by member
  std::vector<u8> has_;
  std::vector<double> squares_, losses_;
  optimizer_settings optimizer_;
  skip_settings skipping_;
  loss_history history_;
};

}  // namespace fusionllm::inline v0
