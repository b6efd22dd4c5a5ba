// SPDX-License-Identifier: Apache-2.0
// The planner's core: cuts a chain of blocks (operators between two allowed cuts) into intervals on devices in a given
// order. For a bound T on what any device or link may take per micro-batch it finds, within memory, the intervals whose
// micro-batch passes soonest, leaving out devices that only slow it down; then it searches T for the shortest step,
//   first micro-batch through and back + (micro-batches - 1) * bottleneck.
// All integers and all constexpr, so that a plan for known machines can be made at compile time.
#pragma once

#include <vector>

#include "../estimate/scaled.hpp"

namespace fusionllm::inline v0 {

/// Sums before cut 0 .. cuts-1; index [device * cuts + cut]. Both directions of a micro-batch count.
struct partition_problem {
  int cuts = 0;                    ///< blocks + 1
  int devices = 0;
  std::vector<i64> load;           ///< [device][cut] compute time of all blocks before the cut
  std::vector<int> share;          ///< [device] replicas: of so many micro-batches it takes one at a time each
  std::vector<int> kind;           ///< [device] devices of one kind have the same hops to and from all others
  std::vector<int> hop;            ///< [earlier device][later device] class of the hop; of the fold: [last][first]
  std::vector<i64> hop_busy;       ///< [class][cut] occupancy of the busier direction
  std::vector<i64> hop_span;       ///< [class][cut] transfer there and back
  std::vector<i64> fixed_bytes;    ///< [cut] memory of parameters of all blocks before the cut
  std::vector<i64> slot_bytes;     ///< [cut] the same of one micro-batch's activations
  std::vector<i64> room;           ///< [device] memory
  int slots = 1;                   ///< micro-batches in flight that memory must hold
  int tail = -1;                   ///< a fold: blocks after this cut belong to device 0 too; -1: no fold
  bool all = false;                ///< leave out no device
  bool several = false;            ///< a device that shares with no replica does not take everything
};

/// Device `device[s]` has the blocks from cut `begin[s]` to `begin[s + 1]`; a fold's tail is not listed.
struct partition {
  bool found = false;
  std::vector<int> device;
  std::vector<int> begin;
  i64 bottleneck = 0;
  i64 span = 0;  ///< one micro-batch alone
};

namespace detail {

class partitioner {
 public:
  constexpr explicit partitioner(const partition_problem& p)
      : p_(p), cuts_(std::size_t(p.cuts)), end_(p.tail < 0 ? p.cuts - 1 : p.tail) {
    weight_.assign(cuts_, 0);  // resize is not constexpr with clang 14
    for (std::size_t c = 0; c < cuts_; ++c) weight_[c] = p.fixed_bytes[c] + i64(p.slots) * p.slot_bytes[c];
    int kinds = 0;
    for (int k : p.kind) kinds = k + 1 > kinds ? k + 1 : kinds;
    kinds_ = std::size_t(kinds);
  }

  /// The soonest micro-batch with nothing above `limit`.
  constexpr partition solve(i64 limit) {
    best_.assign(std::size_t(p_.devices) * cuts_, never);
    from_.assign(std::size_t(p_.devices) * cuts_, origin{});
    nearest_.assign(kinds_ * cuts_, never);
    nearest_device_.assign(kinds_ * cuts_, -1);
    for (int d = 0; d < p_.devices; ++d) {
      begin_at_first(d, limit);
      if (p_.all) {
        if (d > 0) extend(d, limit, d - 1, &best_[std::size_t(d - 1) * cuts_], nullptr);
      } else {
        for (std::size_t k = 0; k < kinds_; ++k) {
          const int sample = nearest_sample(k);
          if (sample >= 0) extend(d, limit, sample, &nearest_[k * cuts_], &nearest_device_[k * cuts_]);
        }
      }
      offer(d);
    }
    return trace(limit);
  }

 private:
  struct origin {
    int device = -1;
    int cut = 0;
  };

  constexpr bool folded() const { return p_.tail >= 0; }
  constexpr i64 load(int d, int from, int to) const {
    return p_.load[std::size_t(d) * cuts_ + std::size_t(to)] - p_.load[std::size_t(d) * cuts_ + std::size_t(from)];
  }
  constexpr i64 allowed(int d, i64 limit) const {
    const i64 s = p_.share[std::size_t(d)];
    return limit > never / s ? never : limit * s;
  }
  constexpr std::size_t hop_at(int a, int b, int cut) const {
    return std::size_t(p_.hop[std::size_t(a) * std::size_t(p_.devices) + std::size_t(b)]) * cuts_ + std::size_t(cut);
  }
  constexpr i64 hop_busy(int a, int b, int cut) const {
    const i64 x = p_.share[std::size_t(a)], y = p_.share[std::size_t(b)];
    const i64 busy = p_.hop_busy[hop_at(a, b, cut)];
    return busy >= never ? never : busy / (x > y ? x : y);
  }

  // Device d as the first one: blocks before cut j, and the tail of a fold.
  constexpr void begin_at_first(int d, i64 limit) {
    if (d > 0 && (p_.all || folded())) return;
    const i64 tail_load = folded() ? load(d, p_.tail, p_.cuts - 1) : 0;
    const i64 tail_weight = folded() ? weight_[cuts_ - 1] - weight_[std::size_t(p_.tail)] : 0;
    const int most = p_.several && !folded() && p_.share[std::size_t(d)] == 1 ? end_ - 1 : end_;
    for (int j = 1; j <= most; ++j) {
      const i64 time = load(d, 0, j) + tail_load;
      if (time > allowed(d, limit)) break;
      if (weight_[std::size_t(j)] - weight_[0] + tail_weight > p_.room[std::size_t(d)]) break;
      best_[std::size_t(d) * cuts_ + std::size_t(j)] = time;
    }
  }

  // Device d after one of the devices that `before` is the best of; `sample` has their hops.
  constexpr void extend(int d, i64 limit, int sample, const i64* before, const int* who) {
    const i64* sum = &p_.load[std::size_t(d) * cuts_];
    window_.clear();
    std::size_t head = 0;
    const i64 most = allowed(d, limit);
    for (int j = 2; j <= end_; ++j) {
      const int i = j - 1;
      if (before[i] < never && hop_busy(sample, d, i) <= limit) {
        const i64 value = plus(before[i], p_.hop_span[hop_at(sample, d, i)]) - sum[i];
        if (value < never / 2) {
          while (window_.size() > head && window_.back().value > value) window_.pop_back();
          window_.push_back({value, i});
        }
      }
      while (head < window_.size() && (sum[j] - sum[window_[head].cut] > most || too_heavy(d, window_[head].cut, j))) ++head;
      if (head >= window_.size()) continue;
      const i64 total = window_[head].value + sum[j];
      i64& best = best_[std::size_t(d) * cuts_ + std::size_t(j)];
      if (total >= best) continue;
      best = total;
      const int cut = window_[head].cut;
      from_[std::size_t(d) * cuts_ + std::size_t(j)] = {who ? who[cut] : sample, cut};
    }
  }
  constexpr bool too_heavy(int d, int i, int j) const {
    return weight_[std::size_t(j)] - weight_[std::size_t(i)] > p_.room[std::size_t(d)];
  }

  constexpr int nearest_sample(std::size_t kind) const {
    for (std::size_t c = 0; c < cuts_; ++c)
      if (nearest_device_[kind * cuts_ + c] >= 0) return nearest_device_[kind * cuts_ + c];
    return -1;
  }
  constexpr void offer(int d) {
    const std::size_t k = std::size_t(p_.kind[std::size_t(d)]) * cuts_;
    for (std::size_t c = 0; c < cuts_; ++c)
      if (best_[std::size_t(d) * cuts_ + c] < nearest_[k + c]) {
        nearest_[k + c] = best_[std::size_t(d) * cuts_ + c];
        nearest_device_[k + c] = d;
      }
  }

  constexpr partition trace(i64 limit) const {
    int last = -1;
    i64 span = never;
    for (int d = 0; d < p_.devices; ++d) {
      if (p_.all && d + 1 < p_.devices) continue;
      i64 s = best_[std::size_t(d) * cuts_ + std::size_t(end_)];
      if (folded()) {
        if (d == 0 || hop_busy(d, 0, end_) > limit) continue;
        s = plus(s, p_.hop_span[hop_at(d, 0, end_)]);
      }
      if (s < span) {
        span = s;
        last = d;
      }
    }
    partition r;
    if (last < 0) return r;
    r.found = true;
    r.span = span;
    int d = last, j = end_;
    if (folded()) r.bottleneck = hop_busy(last, 0, end_);
    std::vector<int> devices, cuts{end_};
    while (d >= 0) {
      const origin o = from_[std::size_t(d) * cuts_ + std::size_t(j)];
      const bool first = o.device < 0;
      i64 time = load(d, first ? 0 : o.cut, j);
      if (first && folded()) time += load(d, p_.tail, p_.cuts - 1);
      const i64 s = p_.share[std::size_t(d)];
      raise(r.bottleneck, (time + s - 1) / s);
      devices.push_back(d);
      cuts.push_back(first ? 0 : o.cut);
      if (!first) raise(r.bottleneck, hop_busy(o.device, d, o.cut));
      d = o.device;
      j = o.cut;
    }
    r.device.assign(devices.rbegin(), devices.rend());
    r.begin.assign(cuts.rbegin(), cuts.rend());
    return r;
  }
  static constexpr void raise(i64& a, i64 b) { a = b > a ? b : a; }

  struct candidate {
    i64 value;
    int cut;
  };

  const partition_problem& p_;
  std::size_t cuts_;
  int end_;
  std::size_t kinds_ = 0;
  std::vector<i64> weight_;
  std::vector<i64> best_;            ///< [device][cut] soonest micro-batch, this device having the blocks up to the cut
  std::vector<origin> from_;
  std::vector<i64> nearest_;         ///< [kind][cut] the best of the devices of a kind
  std::vector<int> nearest_device_;
  std::vector<candidate> window_;
};

}  // namespace detail

/// What `rounds` micro-batches take, roughly: a pipeline fills once and then moves at its slowest place.
constexpr i64 pipeline_time(const partition& x, int rounds) {
  const i64 steady = x.bottleneck > never / (rounds > 0 ? rounds : 1) ? never : x.bottleneck * (rounds - 1);
  return plus(x.span < never ? x.span : never, steady);
}

/// The partition with the least `pipeline_time`; `found` is false when memory or missing links allow none.
constexpr partition best_partition(const partition_problem& p, int rounds) {
  if (p.cuts < 2 || p.devices < 1 || p.tail == 0) return {};
  detail::partitioner solver(p);
  partition best = solver.solve(never - 1);
  if (!best.found) return best;
  // No bottleneck lies under a device alone with all of them helping it.
  i64 helpers = 0;
  for (int d = 0; d < p.devices; ++d) {
    const i64 whole = p.load[std::size_t(d + 1) * std::size_t(p.cuts) - 1];
    helpers += (i64(1) << 40) / (whole > 0 ? whole : 1) * p.share[std::size_t(d)] + 1;
  }
  const i64 low = (i64(1) << 40) / helpers > 0 ? (i64(1) << 40) / helpers : 1;
  const i64 high = best.bottleneck;
  int eighths = 1;  // steps of 1/8, or coarser where that would make more than 48 of them
  for (; eighths < 8; eighths *= 2) {
    int steps = 0;
    for (i64 t = low; t < high && steps <= 48; t += t * eighths / 8 + 1) ++steps;
    if (steps <= 48) break;
  }
  const auto better = [&](const partition& x) { return x.found && pipeline_time(x, rounds) < pipeline_time(best, rounds); };
  for (i64 t = low; t < high; t += t * eighths / 8 + 1) {
    partition x = solver.solve(t);
    if (!x.found) continue;
    if (better(x)) best = x;
    if (x.bottleneck > t) t = x.bottleneck;
  }
  for (int i = 0; i < 8; ++i) {
    partition x = solver.solve(best.bottleneck - 1);
    if (!better(x)) break;
    best = x;
  }
  return best;
}

}  // namespace fusionllm::inline v0
