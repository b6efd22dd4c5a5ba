// SPDX-License-Identifier: Apache-2.0
// The warm-up's arithmetic: from measured times to the coefficients of the cost model. Repeated measurements of one
// size count as their median; sizes are weighed by relative error; no coefficient is negative; and a coefficient that
// explains next to nothing is left out, so that two sizes do not make three numbers.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "rates.hpp"

namespace fusionllm::inline v0 {

/// One timed operator. `bytes`: what it moved (backward moves about twice what forward does).
struct operator_sample {
  std::string kind;
  direction way = direction::forward;
  u64 flops = 0;
  u64 bytes = 0;
  nanoseconds took = 0;
};

/// One timed message, one way.
struct link_probe {
  u64 bytes = 0;
  nanoseconds took = 0;
};

/// The kind under which `fit_rates` expects samples of the optimizer; `flops` are parameters there.
inline constexpr std::string_view update_kind = "update";

namespace detail {

/// Times of one size, and what they depend on: flops, bytes, 1.
struct fit_point {
  std::array<double, 3> x{};
  double took = 0;
};

inline double median(std::vector<nanoseconds> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 ? double(v[n / 2]) : (double(v[n / 2 - 1]) + double(v[n / 2])) / 2;
}

struct timed_size {
  u64 flops, bytes;
  nanoseconds took;
};

inline std::vector<fit_point> medians_by_size(std::vector<timed_size> v) {
  std::stable_sort(v.begin(), v.end(), [](const timed_size& a, const timed_size& b) {
    return a.flops != b.flops ? a.flops < b.flops : a.bytes < b.bytes;
  });
  std::vector<fit_point> r;
  for (std::size_t i = 0; i < v.size();) {
    std::vector<nanoseconds> times;
    std::size_t j = i;
    for (; j < v.size() && v[j].flops == v[i].flops && v[j].bytes == v[i].bytes; ++j) times.push_back(v[j].took);
    r.push_back({{double(v[i].flops), double(v[i].bytes), 1}, median(times)});
    i = j;
  }
  return r;
}

struct fitted {
  std::array<double, 3> c{};
  double error = -1;  ///< sum of squared relative errors; -1: no solution without a negative coefficient
};

// Least squares of took ~ sum of c[k] x[k] over the columns in `columns` (a bit set), each row divided by its time.
inline fitted fit_columns(std::span<const fit_point> points, unsigned columns) {
  std::vector<std::size_t> used;
  for (std::size_t k = 0; k < 3; ++k)
    if (columns >> k & 1) used.push_back(k);
  const std::size_t n = used.size();
  std::array<double, 3> scale{};
  for (std::size_t k : used) {
    for (const fit_point& p : points) scale[k] = (std::max)(scale[k], p.x[k] / p.took);
    if (!(scale[k] > 0)) return {};
  }
  double a[3][4] = {};
  for (const fit_point& p : points)
    for (std::size_t i = 0; i < n; ++i) {
      const double xi = p.x[used[i]] / p.took / scale[used[i]];
      for (std::size_t j = 0; j < n; ++j) a[i][j] += xi * p.x[used[j]] / p.took / scale[used[j]];
      a[i][n] += xi;
    }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t best = i;
    for (std::size_t r = i + 1; r < n; ++r)
      if (a[r][i] * a[r][i] > a[best][i] * a[best][i]) best = r;
    if (a[best][i] * a[best][i] < 1e-24) return {};
    for (std::size_t c = 0; c <= n; ++c) std::swap(a[i][c], a[best][c]);
    for (std::size_t r = 0; r < n; ++r)
      if (r != i) {
        const double f = a[r][i] / a[i][i];
        for (std::size_t c = i; c <= n; ++c) a[r][c] -= f * a[i][c];
      }
  }
  fitted f;
  for (std::size_t i = 0; i < n; ++i) {
    f.c[used[i]] = a[i][n] / a[i][i] / scale[used[i]];
    if (f.c[used[i]] < 0) return {};
  }
  f.error = 0;
  for (const fit_point& p : points) {
    double e = -1;
    for (std::size_t k = 0; k < 3; ++k) e += f.c[k] * p.x[k] / p.took;
    f.error += e * e;
  }
  return f;
}

// Fewest columns first; another must halve the error, and matter.
inline fitted fit_points(std::span<const fit_point> points, std::initializer_list<unsigned> choices) {
  fitted best;
  for (unsigned columns : choices) {
    const fitted f = fit_columns(points, columns);
    if (f.error < 0) continue;
    const double matters = 1e-6 * double(points.size());
    if (best.error < 0 || (f.error < best.error / 2 && best.error > matters)) best = f;
  }
  return best;
}

inline u64 in_attoseconds(double ns) { return u64(ns * double(attoseconds_per_nanosecond) + 0.5); }

inline operator_rate fit_rate(std::vector<timed_size> samples) {
  const auto points = medians_by_size(std::move(samples));
  // bit 0: flops, bit 1: bytes, bit 2: launch
  const fitted f = fit_points(points, {1u, 2u, 4u, 1u | 4u, 2u | 4u, 1u | 2u, 1u | 2u | 4u});
  return {in_attoseconds(f.c[0]), in_attoseconds(f.c[1]), nanoseconds(f.c[2] + 0.5)};
}

}  // namespace detail

/// Rates of every kind and direction among the samples; what was not measured stays as `assumed`, with `other` fitted
/// to all operators together. Errors: errc::topology for a sample that took no time.
inline device_rates fit_rates(std::span<const operator_sample> samples, const device_rates& assumed) {
  device_rates r = assumed;
  std::vector<detail::timed_size> all;
  std::vector<std::pair<device_rates::kind_rate, std::vector<detail::timed_size>>> kinds;
  for (const operator_sample& s : samples) {
    if (s.took <= 0)
      fail(errc::topology, "a warm-up of ", s.kind, " (", name_of(s.way), ") took ", s.took,
           " ns, expected more than 0: measure again, over more work");
    auto k = std::find_if(kinds.begin(), kinds.end(),
                          [&](const auto& e) { return e.first.kind == s.kind && e.first.way == s.way; });
    if (k == kinds.end()) k = kinds.insert(kinds.end(), {{s.kind, s.way, {}}, {}});
    k->second.push_back({s.flops, s.bytes, s.took});
    if (s.kind != update_kind) all.push_back({s.flops, s.bytes, s.took});
  }
  if (!all.empty()) r.other = detail::fit_rate(all);
  for (auto& [kind, times] : kinds) {
    kind.rate = detail::fit_rate(times);
    if (kind.kind == update_kind) {
      r.update = kind.rate;
      continue;
    }
    std::erase_if(r.kinds, [&, &k = kind](const auto& e) { return e.kind == k.kind && e.way == k.way; });
    r.kinds.push_back(kind);
  }
  return r;
}

/// Latency and bandwidth from messages of at least one size above 0; two or more sizes tell them apart.
/// Errors: errc::topology when there is none, or one took no time.
inline path fit_path(std::span<const link_probe> probes) {
  std::vector<detail::timed_size> sizes;
  u64 largest = 0;
  for (const link_probe& p : probes) {
    if (p.took <= 0) fail(errc::topology, "a probe of ", p.bytes, " bytes took ", p.took, " ns, expected more than 0");
    sizes.push_back({0, p.bytes, p.took});
    largest = (std::max)(largest, p.bytes);
  }
  if (largest == 0) fail(errc::topology, "no probe of a link carried bytes: its bandwidth cannot be told");
  const auto points = detail::medians_by_size(std::move(sizes));
  const detail::fitted f = detail::fit_points(points, {2u, 2u | 4u});
  double per_byte = f.c[1];
  if (!(per_byte > 0)) per_byte = points.back().took / double(largest);
  const double rate = double(second) / per_byte;
  return {nanoseconds(f.c[2] + 0.5), rate < 1 ? 1 : rate > 1e18 ? u64(1e18) : u64(rate + 0.5)};
}

}  // namespace fusionllm::inline v0
