// SPDX-License-Identifier: Apache-2.0
// Means of elements that follow one another, summed in double: mean, and the global average of pixels. A team a row.
#pragma once

#include <fusionllm/ops/mean.hpp>
#include <fusionllm/ops/pooling.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct mean_forward {
  const T* x;
  T* y;
  i64 rows, n;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      double sum = 0;
      each_member(team, n, [&](i64 i) { sum += double(float(x[r * n + i])); });
      sum = team.sum(sum);
      if (team.rank == 0) y[r] = T(float(sum / double(n)));
    });
  }
};

template <class T>
struct mean_cotangent {
  const T* dy;
  T* dx;
  i64 rows, n;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T share = T(float(dy[r]) / float(n));
      each_member(team, n, [&](i64 i) { dx[r * n + i] = share; });
    });
  }
};

template <class T, class Launch>
struct mean_kernel {
  /// x (rows, n) -> (rows), rows that follow one another
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const i64 rows = a.out.count(), n = rows ? a.in[0].count() / rows : 0;
    Launch::rows(c, rows, n, mean_forward<T>{a.in[0].template as<const T>(), a.out.template as<T>(), rows, n},
                 "launch a mean");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const i64 rows = a.d_out.count(), n = rows ? a.d_in[0].count() / rows : 0;
    Launch::rows(c, rows, n, mean_cotangent<T>{a.d_out.template as<const T>(), a.d_in[0].template as<T>(), rows, n},
                 "launch the cotangent of a mean");
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<mean_op, T, Launch> : detail::mean_kernel<T, Launch> {};
template <class T, class Launch>
struct team_kernel<global_average_pool_op, T, Launch> : detail::mean_kernel<T, Launch> {};

}  // namespace fusionllm::inline v0
