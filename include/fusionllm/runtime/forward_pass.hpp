// SPDX-License-Identifier: Apache-2.0
// One output of a model, computed for parts of batches, by whoever can: this process, or peers. Results do not depend on
// who computes. Several parts may be asked before the first answer is taken, so that stages on several peers are not idle.
#pragma once

#include "inference.hpp"

namespace fusionllm::inline v0 {

class forward_pass {
 public:
  virtual ~forward_pass() = default;
  virtual const sizes& bounds() const = 0;
  /// Nodes that the output needs.
  virtual const flags& needed() const = 0;
  /// How many may be asked before an answer is taken.
  virtual int window() const { return 1; }

  /// Asks for the output of `s`, within the bounds. `inputs` by node, read before this returns, or until the answer is
  /// taken. A decoder goes on after `past` times, which earlier questions computed. `last_time`: only the last time of each
  /// sequence is wanted, and the answer may be without the others.
  virtual void ask(const sizes& s, std::span<const void* const> inputs, double loss_scale, i64 past, bool last_time) = 0;
  /// The answer to the oldest question; it stays until the next call of this object. Errors: whatever ended the peers.
  virtual tensor_ref answer() = 0;

  tensor_ref run(const sizes& s, std::span<const void* const> inputs, double loss_scale = 1, i64 past = 0, bool last_time = false) {
    ask(s, inputs, loss_scale, past, last_time);
    return answer();
  }
};

/// In this process.
class local_forward final : public forward_pass {
 public:
  explicit local_forward(inference i) : inference_(std::move(i)) {}

  const sizes& bounds() const override { return inference_.bounds(); }
  const flags& needed() const override { return inference_.needed(); }
  void ask(const sizes& s, std::span<const void* const> inputs, double loss_scale, i64 past, bool) override {
    answer_ = inference_.run(s, inputs, loss_scale, past);
  }
  tensor_ref answer() override { return answer_; }

 private:
  inference inference_;
  tensor_ref answer_;
};

}  // namespace fusionllm::inline v0
