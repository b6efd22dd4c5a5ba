// SPDX-License-Identifier: Apache-2.0
// What the runtime does to vectors outside of operators: sums, running statistics, and the search for infinities.
#pragma once

#include <bit>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Calls f(quad number, std::bool_constant<whole>) for the member's quads of n elements.
template <class Team, class F>
FL_HD inline void each_quad(const Team& team, i64 n, bool aligned, F&& f) {
  const i64 whole = aligned ? n / 4 : 0;
  each_item(team, (n + 3) / 4, [&](i64 q) { q < whole ? f(q, std::true_type{}) : f(q, std::false_type{}); });
}

template <class T>
struct add_body {
  const T *a, *b;
  T* out;  ///< may be a or b
  i64 n;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    const bool aligned = quad_aligned(a) && quad_aligned(b) && quad_aligned(out);
    each_quad(team, n, aligned, [&]<bool Whole>(i64 q, std::bool_constant<Whole>) {
      const auto x = load_quad<Whole>(a, 4 * q, n), y = load_quad<Whole>(b, 4 * q, n);
      quad<T> sum;
      for (int j = 0; j < 4; ++j) sum.v[j] = T(float(x.v[j]) + float(y.v[j]));
      store_quad<Whole>(sum, out, 4 * q, n);
    });
  }
};

/// w = kept w + g
struct decay_body {
  float* w;
  const float* g;
  i64 n;
  float kept;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, n, [&](i64 i) { w[i] = kept * w[i] + g[i]; });
  }
};

template <class T>
struct non_finite_body {
  const T* x;
  i64 n;
  u32* found;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    u32 bad = 0;
    each_quad(team, n, quad_aligned(x), [&]<bool Whole>(i64 q, std::bool_constant<Whole>) {
      const auto v = load_quad<Whole>(x, 4 * q, n);
      for (int j = 0; j < 4; ++j) bad |= (std::bit_cast<u32>(float(v.v[j])) & 0x7F800000u) == 0x7F800000u;
    });
    if (bad) *found = 1;  // whoever writes, writes 1
  }
};

}  // namespace detail

/// out = a + b; out may be a or b.
template <class Launch, class T>
void add_vectors(typename Launch::context& c, T* out, const T* a, const T* b, i64 n) {
  Launch::items(c, (n + 3) / 4, detail::add_body<T>{a, b, out, n}, "launch a sum of two tensors");
}
/// w = kept w + g, of a running statistic.
template <class Launch>
void decay_vector(typename Launch::context& c, float* w, const float* g, i64 n, double kept) {
  Launch::items(c, n, detail::decay_body{w, g, n, float(kept)}, "launch the update of a running statistic");
}
/// *found becomes 1 if x holds an infinity or a NaN, and else stays what it was.
template <class Launch, class T>
void search_non_finite(typename Launch::context& c, const T* x, i64 n, u32* found) {
  Launch::items(c, (n + 3) / 4, detail::non_finite_body<T>{x, n, found}, "launch the search for infinities");
}

}  // namespace fusionllm::inline v0
