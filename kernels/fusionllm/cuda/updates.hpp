// SPDX-License-Identifier: Apache-2.0
// AdamW and sgd over all parameters in one launch. Bits are those of the plain loops: an element's update is one formula,
// which is not contracted.
#pragma once

#include <fusionllm/device/adamw.hpp>

#include "update_list.hpp"

namespace fusionllm::inline v0 {

/// Rounded once, for a launch.
struct sgd_factors {
  float rate, momentum, decay, clip;
};

namespace detail {

/// Runs `one(weight, gradient, m, v)` on four neighbours, or on those up to the end.
template <bool Whole, bool HasSquares, class F>
FL_HD inline void update_quad(const update_item& p, i64 i, i64 end, F&& one) {
  auto w = load_quad<Whole>(p.weight, i, end), m = load_quad<Whole>(p.m, i, end);
  const auto g = load_quad<Whole>(p.gradient, i, end);
  quad<float> v{};
  if constexpr (HasSquares) v = load_quad<Whole>(p.v, i, end);
  for (int j = 0; j < 4; ++j) one(w.v[j], g.v[j], m.v[j], v.v[j]);
  store_quad<Whole>(w, p.weight, i, end);
  store_quad<Whole>(m, p.m, i, end);
  if constexpr (HasSquares) store_quad<Whole>(v, p.v, i, end);
  if (!p.rounded) return;
  quad<bfloat16> low;
  for (int j = 0; j < 4; ++j) low.v[j] = bfloat16(w.v[j]);
  store_quad<Whole>(low, p.rounded, i, end);
}

template <bool HasSquares, class Team, class F>
FL_HD inline void update_share(const Team& team, const update_item& p, i64 begin, i64 end, F&& one) {
  const bool aligned = quad_aligned(p.weight) && quad_aligned(p.gradient) && quad_aligned(p.m) && quad_aligned(p.v)
                       && quad_aligned(p.rounded);
  each_member(team, (end - begin + 3) / 4, [&](i64 q) {
    const i64 i = begin + 4 * q;
    if (aligned && i + 4 <= end) update_quad<true, HasSquares>(p, i, end, one);
    else update_quad<false, HasSquares>(p, i, end, one);
  });
}

struct adamw_body {
  update_list list;
  adamw_factors<float> plain, decaying;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_share(team, list, [&](const update_item& p, i64 begin, i64 end) {
      const adamw_factors<float>& f = p.decays ? decaying : plain;
      update_share<true>(team, p, begin, end,
                         [&](float& w, float g, float& m, float& v) { adamw_element(w, g, m, v, f); });
    });
  }
};

/// m = momentum m + (g + decay w); w -= rate m.
struct sgd_body {
  update_list list;
  sgd_factors plain, decaying;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_share(team, list, [&](const update_item& p, i64 begin, i64 end) {
      const sgd_factors& f = p.decays ? decaying : plain;
      update_share<false>(team, p, begin, end, [&](float& w, float g, float& m, float&) {
        m = f.momentum * m + (g * f.clip + f.decay * w);
        w = w - f.rate * m;
      });
    });
  }
};

}  // namespace detail

/// One step of AdamW; `decaying` holds for the items that decay.
template <class Launch>
void adamw_all(typename Launch::context& c, const update_list& list, const adamw_factors<float>& plain,
               const adamw_factors<float>& decaying) {
  Launch::blocks(c, list.pieces * shares_of_piece, detail::adamw_body{list, plain, decaying}, "launch AdamW");
}
/// One step of gradient descent with momentum.
template <class Launch>
void sgd_all(typename Launch::context& c, const update_list& list, const sgd_factors& plain,
             const sgd_factors& decaying) {
  Launch::blocks(c, list.pieces * shares_of_piece, detail::sgd_body{list, plain, decaying}, "launch sgd");
}

}  // namespace fusionllm::inline v0
