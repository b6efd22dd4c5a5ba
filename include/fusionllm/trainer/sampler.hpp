// SPDX-License-Identifier: Apache-2.0
// Which sample a row of a step trains on: a pure function of (seed, step, row). Every epoch is a permutation of all
// samples, so that none comes twice before all came once; any peer finds just its rows, and resuming needs the step only.
#pragma once

#include "../core/error.hpp"
#include "../core/philox.hpp"

namespace fusionllm::inline v0 {

/// A permutation of [0, n) that is computed, not stored: a Feistel network over the next even power of two, walked along
/// its cycle until it lands inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
class permutation {
 public:
  /// Errors: errc::data when n is not 1 or more.
  constexpr permutation(u64 seed, u64 epoch, u64 n) : seed_(seed), epoch_(epoch), n_(n) {
    if (n == 0) fail(errc::data, "a permutation of 0 samples: 1 or more are needed");
    while (half_ < 32 && (u64(1) << (2 * half_)) < n) ++half_;
  }

  /// Where `index` goes, for index < n.
  constexpr u64 operator()(u64 index) const {
    do index = mix(index);
    while (index >= n_);
    return index;
  }

 private:
  static constexpr u32 domain = 0x5A4D504Cu;  ///< keeps these draws apart from those of a model's nodes

  constexpr u64 mix(u64 x) const {
    const u64 mask = (u64(1) << half_) - 1;
    u64 left = x >> half_, right = x & mask;
    for (u32 round = 0; round < 6; ++round) {
      const u64 next = left ^ (philox({seed_, epoch_, round, domain}, right).v[0] & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  u64 seed_, epoch_, n_;
  int half_ = 1;
};

/// Samples of the rows of steps: row r of step s is number s * batch + r of an endless sequence of epochs.
class sampler {
 public:
  /// Errors: errc::data when a count is not 1 or more.
  constexpr sampler(u64 seed, i64 samples, i64 rows) : seed_(seed), samples_(u64(samples)), batch_(u64(rows)) {
    if (samples < 1) fail(errc::data, "the data holds ", samples, " samples, expected 1 or more");
    if (rows < 1) fail(errc::data, "a batch of ", rows, " rows, expected 1 or more");
  }

  constexpr i64 samples() const { return i64(samples_); }
  constexpr i64 batch() const { return i64(batch_); }
  constexpr u64 epoch_of(u64 step, i64 row) const { return (step * batch_ + u64(row)) / samples_; }
  constexpr i64 sample(u64 step, i64 row) const {
    const u64 position = step * batch_ + u64(row);
    return i64(permutation(seed_, position / samples_, samples_)(position % samples_));
  }

 private:
  u64 seed_, samples_, batch_;
};

}  // namespace fusionllm::inline v0
