// SPDX-License-Identifier: Apache-2.0
// Softmax over the last dimension, a team a row; the output may lie over the input.
#pragma once

#include <fusionllm/ops/softmax.hpp>

#include "cross_entropy.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct softmax_forward {
  const T* x;
  T* y;
  i64 rows, n;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T* from = x + r * n;
      T* to = y + r * n;
      running_sum mine;
      each_member(team, n, [&](i64 i) { mine.add(float(from[i])); });
      const running_sum all = mine.over(team);
      each_member(team, n, [&](i64 i) { to[i] = T(std::exp(float(from[i]) - all.largest) / all.sum); });
    });
  }
};

template <class T>
struct softmax_cotangent {
  const T *y, *dy;
  T* dx;
  i64 rows, n;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T *p = y + r * n, *d = dy + r * n;
      T* to = dx + r * n;
      float sum = 0;
      each_member(team, n, [&](i64 i) { sum += float(p[i]) * float(d[i]); });
      sum = team.sum(sum);
      each_member(team, n, [&](i64 i) { to[i] = T(float(p[i]) * (float(d[i]) - sum)); });
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<softmax_op, T, Launch> {
  /// x (rows, n) -> exp(x - largest) / sum
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), n = a.out.dims.last();
    Launch::rows(c, rows, n,
                 detail::softmax_forward<T>{a.in[0].template as<const T>(), a.out.template as<T>(), rows, n},
                 "launch a softmax");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    Launch::rows(c, rows, n,
                 detail::softmax_cotangent<T>{a.out.template as<const T>(), a.d_out.template as<const T>(),
                                              a.d_in[0].template as<T>(), rows, n},
                 "launch the cotangent of a softmax");
  }
};

}  // namespace fusionllm::inline v0
