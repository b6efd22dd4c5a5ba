// SPDX-License-Identifier: Apache-2.0
// Which steps are skipped, and what has to be known of the steps before to say so: the losses of the last accepted steps
// and how many were skipped in a row. The same losses give the same state, on the leader and on whoever follows its
// reports; it is part of a checkpoint.
#pragma once

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

enum class skip_reason : u32 { none, not_finite, loss_spike };

struct skip_settings {
  u64 most_in_row = 0;      ///< so many skipped steps in a row end the run; 0: never
  double spike_factor = 0;  ///< a loss above so many times the mean of the last accepted ones skips its step; 0: never
};

class loss_history {
 public:
  /// Losses in the mean; before there are so many, no loss is a spike.
  static constexpr std::size_t window = 16;
  static constexpr std::size_t numbers_kept = window + 2;
  using state = std::array<double, numbers_kept>;  ///< skipped in a row, count, losses from the oldest on

  /// Of the last accepted losses, summed from the oldest on; 0 for none.
  double mean() const {
    double sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum += losses_[i];
    return count_ ? sum / double(count_) : 0;
  }
  /// Of losses whose mean is not above 0 there is no "so many times as much".
  bool is_spike(double loss, double factor) const {
    return factor > 0 && count_ == window && mean() > 0 && loss > factor * mean();
  }
  u64 skipped_in_row() const { return skipped_; }

  /// A step is over.
  void add(double loss, bool skipped) {
    if (skipped) {
      ++skipped_;
      return;
    }
    skipped_ = 0;
    if (count_ == window)
      for (std::size_t i = 1; i < window; ++i) losses_[i - 1] = losses_[i];
    else ++count_;
    losses_[count_ - 1] = loss;
  }

  state numbers() const {
    state s{};
    s[0] = double(skipped_);
    s[1] = double(count_);
    for (std::size_t i = 0; i < count_; ++i) s[i + 2] = losses_[i];
    return s;
  }
  /// Errors: `code`, for numbers that no history has.
  static loss_history from(std::span<const double> s, errc code) {
    loss_history h;
    bool good = s.size() == numbers_kept && s[0] >= 0 && s[0] < 1e15 && s[1] >= 0 && s[1] <= double(window);
    if (good) {
      h.skipped_ = u64(s[0]);
      h.count_ = std::size_t(s[1]);
      for (std::size_t i = 0; i < h.count_; ++i) {
        h.losses_[i] = s[i + 2];
        good = good && std::isfinite(s[i + 2]);
      }
    }
    if (!good) fail(code, "the losses of earlier steps are ", s.size(), " numbers that no run has: take another checkpoint");
    return h;
  }
  bool operator==(const loss_history& o) const { return numbers() == o.numbers(); }

 private:
  u64 skipped_ = 0;
  std::size_t count_ = 0;
  std::array<double, window> losses_{};
};

}  // namespace fusionllm::inline v0
