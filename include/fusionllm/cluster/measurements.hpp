// SPDX-License-Identifier: Apache-2.0
// From what peers measured of themselves and of their links to the machines of a run.
#pragma once

#include "../estimate/fit.hpp"
#include "members.hpp"

namespace fusionllm::inline v0 {

/// Errors: protocol, for numbers that nobody measures.
inline measured checked(const connection& c, measured m) {
  constexpr u64 most = u64(1) << 60;
  const auto sane = [&](u64 a, u64 b, i64 took) {
    if (a > most || b > most || took < 0 || took > 1000 * second)
      fail(errc::protocol, c.label(), " says that it measured ", took, " ns for ", a, " and ", b);
  };
  for (auto& s : m.samples) sane(s.flops, s.bytes, s.took);
  for (auto& p : m.probes) sane(p.bytes, 0, p.took);
  return m;
}

/// The first so many of the machines that a topology names.
inline cluster first_machines(const cluster& all, int count) {
  cluster c;
  c.sites = all.sites;
  c.peers.assign(all.peers.begin(), all.peers.begin() + count);
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) c.paths.push_back(all.between(a, b));
  return c;
}

/// The machines that no topology names, from `results` by rank.
inline cost_model measured_machines(const members& all, const std::vector<measured>& results, encoded_bytes_function encoded_bytes) {
  machine each;
  each.flops_per_second = 1'000'000'000;
  each.memory_bytes = u64(1) << 40;
  cluster c = uniform_cluster(int(all.size()), each, path{});
  for (u32 i = 0; i < all.size(); ++i) {
    c.peers[i].name = all[i].name;
    if (all[i].joined.memory_bytes) c.peers[i].memory_bytes = all[i].joined.memory_bytes;
  }
  cost_model costs(std::move(c), encoded_bytes);
  for (int rank = 0; rank < int(all.size()); ++rank) {
    const measured& m = results[std::size_t(rank)];
    std::vector<operator_sample> samples;
    for (const auto& s : m.samples) samples.push_back({s.kind, s.backward ? direction::backward : direction::forward, s.flops, s.bytes, s.took});
    costs.set_rates(rank, fit_rates(samples, costs.rates(rank)));
    for (int to = 0; to < int(all.size()); ++to) {
      std::vector<link_probe> probes;
      for (const auto& p : m.probes)
        if (int(p.to) == to) probes.push_back({p.bytes, p.took});
      if (!probes.empty()) costs.set_path(rank, to, fit_path(probes));
    }
  }
  return costs;
}

}  // namespace fusionllm::inline v0
