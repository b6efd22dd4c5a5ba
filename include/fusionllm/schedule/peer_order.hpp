// SPDX-License-Identifier: Apache-2.0
// In which order a chain visits peers, so that its slow links are few and are crossed once: groups of peers on the
// shortest way, peers within a group likewise, then exchanges of whole stretches while they shorten it. The length of
// a way is what its cheapest cuts cost: every hop's transfer once, and the busiest hop for every micro-batch.
#pragma once

#include <algorithm>

#include "bandwidth_clusters.hpp"
#include "chain.hpp"

namespace fusionllm::inline v0 {

using peer_order = std::vector<int>;

namespace detail {

class order_finder {
 public:
  explicit order_finder(chain& c) : n_(std::size_t(c.profile().problem().peers())) {
    const int rounds = c.profile().problem().micro_batches;
    for (int a = 0; a < int(n_); ++a)
      for (int b = 0; b < int(n_); ++b) {
        span_.push_back(a == b ? 0 : c.cheapest_span(a, b));
        busy_.push_back(a == b ? 0 : c.cheapest_busy(a, b));
        cost_.push_back(plus(span_.back(), busy_.back()));
      }
    for (int a = 0; a < int(n_); ++a) room_.push_back(c.profile().problem().costs->machines().peers[std::size_t(a)].memory_bytes);
    rounds_ = rounds;
  }

  nanoseconds length(const peer_order& o) const {
    nanoseconds sum = 0, busiest = 0;
    for (std::size_t i = 0; i + 1 < o.size(); ++i) {
      sum = plus(sum, span_[index(o[i], o[i + 1])]);
      busiest = (std::max)(busiest, busy_[index(o[i], o[i + 1])]);
    }
    return plus(sum, busiest > never / rounds_ ? never : busiest * rounds_);
  }

  /// One group after another; every peer once.
  peer_order through(const peer_groups& label) const {
    const int groups = *std::max_element(label.begin(), label.end()) + 1;
    std::vector<peer_order> members{std::size_t(groups)};
    for (std::size_t i = 0; i < n_; ++i) members[std::size_t(label[i])].push_back(int(i));
    peer_order best;
    for (int first = 0; first < groups; ++first) {
      peer_order o;
      std::vector<u8> taken(std::size_t(groups), u8(0));
      for (int g = first; g >= 0; g = nearest_group(members, taken, o.back())) {
        taken[std::size_t(g)] = 1;
        visit(members[std::size_t(g)], o);
      }
      if (best.empty() || length(o) < length(best)) best = o;
    }
    return shortened(best);
  }

  /// Turns stretches round while that makes the way shorter.
  peer_order shortened(peer_order o) const {
    nanoseconds now = length(o);
    for (int pass = 0; pass < 4; ++pass) {
      bool shorter = false;
      for (std::size_t i = 0; i < o.size(); ++i)
        for (std::size_t j = i + 2; j <= o.size(); ++j) {
          std::reverse(o.begin() + std::ptrdiff_t(i), o.begin() + std::ptrdiff_t(j));
          const nanoseconds then = length(o);
          if (then < now) {
            now = then;
            shorter = true;
          } else {
            std::reverse(o.begin() + std::ptrdiff_t(i), o.begin() + std::ptrdiff_t(j));
          }
        }
      if (!shorter) break;
    }
    return o;
  }

 private:
  std::size_t index(int a, int b) const { return std::size_t(a) * n_ + std::size_t(b); }

  // From the last peer of the order, always on to the nearest; of equally near ones to the one with most memory.
  void visit(peer_order left, peer_order& o) const {
    while (!left.empty()) {
      std::size_t best = 0;
      for (std::size_t k = 1; k < left.size(); ++k) {
        const nanoseconds here = o.empty() ? 0 : cost_[index(o.back(), left[k])];
        const nanoseconds there = o.empty() ? 0 : cost_[index(o.back(), left[best])];
        if (here < there || (here == there && room_[std::size_t(left[k])] > room_[std::size_t(left[best])])) best = k;
      }
      o.push_back(left[best]);
      left.erase(left.begin() + std::ptrdiff_t(best));
    }
  }

  int nearest_group(const std::vector<peer_order>& members, const std::vector<u8>& taken, int from) const {
    int best = -1;
    nanoseconds least = 0;
    for (std::size_t g = 0; g < members.size(); ++g) {
      if (taken[g]) continue;
      nanoseconds cost = never;
      for (int peer : members[g]) cost = (std::min)(cost, cost_[index(from, peer)]);
      if (best < 0 || cost < least) {
        best = int(g);
        least = cost;
      }
    }
    return best;
  }

  std::size_t n_;
  int rounds_ = 1;
  std::vector<nanoseconds> span_, busy_, cost_;  ///< [from][to]
  std::vector<u64> room_;
};

}  // namespace detail

/// Orders worth planning: all of them for up to `exhaustive` peers; else one for every grouping by bandwidth, each also
/// turned round. No two are the same.
inline std::vector<peer_order> candidate_orders(chain& c, int exhaustive = 5, std::size_t thresholds = 6) {
  const cluster& machines = c.profile().problem().costs->machines();
  std::vector<peer_order> r;
  if (machines.size() <= exhaustive) {
    peer_order o;
    for (int i = 0; i < machines.size(); ++i) o.push_back(i);
    do r.push_back(o);
    while (std::next_permutation(o.begin(), o.end()));
    return r;
  }
  const detail::order_finder finder(c);
  const auto add = [&](peer_order o) {
    for (int turn = 0; turn < 2; ++turn) {
      if (std::find(r.begin(), r.end(), o) == r.end()) r.push_back(o);
      std::reverse(o.begin(), o.end());
    }
  };
  std::vector<peer_groups> groupings = threshold_groups(machines, thresholds);
  groupings.push_back(louvain_groups(machines));
  groupings.push_back(peer_groups(std::size_t(machines.size()), 0));
  for (const peer_groups& g : groupings) add(finder.through(g));
  return r;
}

}  // namespace fusionllm::inline v0
