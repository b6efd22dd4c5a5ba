// SPDX-License-Identifier: Apache-2.0
// Groups of peers that are joined by similar bandwidth, found in two ways, both deterministic and in integers: Louvain
// (Blondel et al., arXiv 0803.0476) on the logarithm of the bandwidth, and single linkage at every threshold.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "../estimate/cluster.hpp"

namespace fusionllm::inline v0 {

/// One label a peer; labels count from 0 in order of first appearance.
using peer_groups = std::vector<int>;

/// log2(x) in 256ths, for x > 0: exact at powers of two, a straight line between them.
constexpr i64 log2_256ths(u64 x) {
  const int whole = int(std::bit_width(x)) - 1;
  const u64 rest = whole >= 8 ? (x >> (whole - 8)) - 256 : (x << (8 - whole)) - 256;
  return i64(whole) * 256 + i64(rest);
}

namespace detail {

// Bytes per second that get through both ways.
inline u64 mutual_bandwidth(const cluster& c, int a, int b) {
  return (std::min)(c.between(a, b).bytes_per_second, c.between(b, a).bytes_per_second);
}

inline peer_groups relabeled(const peer_groups& g) {
  std::vector<int> seen;
  peer_groups r;
  for (int label : g) {
    auto at = std::find(seen.begin(), seen.end(), label);
    if (at == seen.end()) at = seen.insert(seen.end(), label);
    r.push_back(int(at - seen.begin()));
  }
  return r;
}

using weights = std::vector<std::vector<i64>>;  ///< [peer][peer], symmetric
inline weights no_weights(std::size_t n) { return weights(n, std::vector<i64>(n)); }

// One level of Louvain: peers move to the neighbouring group that raises modularity most, in order, until none does.
inline peer_groups move_nodes(const weights& w) {
  const std::size_t n = w.size();
  peer_groups group(n);
  std::vector<i64> degree(n), total(n);
  i64 all = 0;
  for (std::size_t i = 0; i < n; ++i) {
    group[i] = int(i);
    for (i64 x : w[i]) degree[i] += x;
    total[i] = degree[i];
    all += degree[i];
  }
  for (int round = 0; round < 100; ++round) {
    bool moved = false;
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<i64> to(n);
      for (std::size_t j = 0; j < n; ++j)
        if (j != i) to[std::size_t(group[j])] += w[i][j];
      const std::size_t home = std::size_t(group[i]);
      total[home] -= degree[i];
      std::size_t best = home;
      // Gain in modularity, times all^2 / 2.
      i64 best_gain = to[home] * all - degree[i] * total[home];
      for (std::size_t g = 0; g < n; ++g) {
        if (to[g] == 0 || g == home) continue;
        const i64 gain = to[g] * all - degree[i] * total[g];
        if (gain > best_gain) {
          best_gain = gain;
          best = g;
        }
      }
      total[best] += degree[i];
      group[i] = int(best);
      moved = moved || best != home;
    }
    if (!moved) break;
  }
  return relabeled(group);
}

}  // namespace detail

/// Communities by modularity of log2(bandwidth / slowest bandwidth) + 1.
inline peer_groups louvain_groups(const cluster& c) {
  const int n = c.size();
  u64 slowest = 0;
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) {
      const u64 x = a == b ? 0 : detail::mutual_bandwidth(c, a, b);
      if (x != 0 && (slowest == 0 || x < slowest)) slowest = x;
    }
  detail::weights w = detail::no_weights(c.peers.size());
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b)
      if (const u64 x = a == b ? 0 : detail::mutual_bandwidth(c, a, b))
        w[std::size_t(a)][std::size_t(b)] = log2_256ths(x) - log2_256ths(slowest) + 64;
  peer_groups label(std::size_t(n), 0);
  for (int i = 0; i < n; ++i) label[std::size_t(i)] = i;
  for (;;) {
    const peer_groups step = detail::move_nodes(w);
    const int groups = *std::max_element(step.begin(), step.end()) + 1;
    for (int& l : label) l = step[std::size_t(l)];
    if (groups == int(w.size())) break;
    detail::weights merged = detail::no_weights(std::size_t(groups));
    for (std::size_t a = 0; a < w.size(); ++a)
      for (std::size_t b = 0; b < w.size(); ++b) merged[std::size_t(step[a])][std::size_t(step[b])] += w[a][b];
    w = std::move(merged);
  }
  return detail::relabeled(label);
}

/// Peers joined, directly or through others, by at least `bytes_per_second` both ways.
inline peer_groups linked_groups(const cluster& c, u64 bytes_per_second) {
  const int n = c.size();
  peer_groups label(std::size_t(n), -1);
  int groups = 0;
  for (int first = 0; first < n; ++first) {
    if (label[std::size_t(first)] >= 0) continue;
    std::vector<int> reached{first};
    label[std::size_t(first)] = groups;
    for (std::size_t k = 0; k < reached.size(); ++k)
      for (int b = 0; b < n; ++b)
        if (label[std::size_t(b)] < 0 && detail::mutual_bandwidth(c, reached[k], b) >= bytes_per_second) {
          label[std::size_t(b)] = groups;
          reached.push_back(b);
        }
    ++groups;
  }
  return label;
}

/// Single linkage at every bandwidth that occurs, fastest first, at most `most` of them, evenly picked; each different.
inline std::vector<peer_groups> threshold_groups(const cluster& c, std::size_t most) {
  std::vector<u64> rates;
  for (int a = 0; a < c.size(); ++a)
    for (int b = 0; b < a; ++b)
      if (const u64 x = detail::mutual_bandwidth(c, a, b)) rates.push_back(x);
  std::sort(rates.begin(), rates.end(), [](u64 a, u64 b) { return a > b; });
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  std::vector<peer_groups> r;
  for (u64 rate : rates) {
    peer_groups g = linked_groups(c, rate);
    if (r.empty() || r.back() != g) r.push_back(std::move(g));
  }
  if (r.size() <= most) return r;
  std::vector<peer_groups> picked;
  for (std::size_t k = 0; k < most; ++k) picked.push_back(r[k * (r.size() - 1) / (most - 1)]);
  return picked;
}

}  // namespace fusionllm::inline v0
