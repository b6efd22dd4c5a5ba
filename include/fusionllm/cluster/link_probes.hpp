// SPDX-License-Identifier: Apache-2.0
// Measures a peer's links, one after the other, with small and large messages in turn: each is answered by a small one.
#pragma once

#include "neighbours.hpp"

namespace fusionllm::inline v0 {

class link_probes {
 public:
  link_probes(const neighbours& others, reactor& loop) : others_(others), loop_(loop) {}

  void begin() {
    results_.clear();
    rank_ = 0;
    count_ = 0;
    next();
  }
  /// Nothing is left to measure.
  bool done() const { return rank_ >= others_.size(); }
  const std::vector<probe_message>& results() const { return results_; }

  /// Another peer's probe, of so many bytes.
  static void answer(connection& c, u64 bytes) { send_control(c, control_kind::probe_answer, step_number{bytes}); }
  /// An answer that `bytes` came. False for one that nobody waits for.
  bool answered(const connection& c, u64 bytes) {
    if (done() || others_.at(rank_) != &c || bytes != size_of_probe()) return false;
    // The answer travels the other way: what it took is taken for the latency of one small message each way.
    const nanoseconds round_trip = loop_.now() - began_;
    const nanoseconds took = bytes > small ? round_trip - small_round_trip_ / 2 : round_trip / 2;
    if (bytes <= small) small_round_trip_ = round_trip;
    results_.push_back({rank_, bytes, (std::max)(took, nanoseconds(1))});
    if (++count_ == 2 * pairs) {
      count_ = 0;
      ++rank_;
    }
    next();
    return true;
  }

 private:
  static constexpr u64 small = 1 << 10, large = 256 << 10;
  static constexpr int pairs = 2;

  u64 size_of_probe() const { return count_ % 2 ? large : small; }
  void next() {
    while (!done() && !others_.at(rank_)) ++rank_;
    if (done()) return;
    outgoing m;
    m.header.kind = frame_kind::bulk;
    m.owned.resize(size_of_probe());
    m.level = priority::tensor;
    began_ = loop_.now();
    others_.at(rank_)->send(std::move(m));
  }

  const neighbours& others_;
  reactor& loop_;
  std::vector<probe_message> results_;
  u32 rank_ = ~0u;  ///< of the peer at the other end
  int count_ = 0;   ///< probes of this link so far
  nanoseconds began_ = 0, small_round_trip_ = 0;
};

}  // namespace fusionllm::inline v0
