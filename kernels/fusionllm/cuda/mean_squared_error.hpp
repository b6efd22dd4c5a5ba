// SPDX-License-Identifier: Apache-2.0
// The sum of squared differences, in double: parts that depend on the number of elements alone, then the parts.
#pragma once

#include <fusionllm/ops/loss.hpp>

#include "total.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct squared_difference {
  const T *x, *y;
  FL_HD double operator()(i64 i) const {
    const double d = double(float(x[i])) - double(float(y[i]));
    return d * d;
  }
};

template <class T>
struct squared_error_cotangents {
  const T *x, *y;
  T *dx, *dy;  ///< null: not wanted
  i64 count;
  float scale;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, count, [&](i64 i) {
      const float d = scale * (float(x[i]) - float(y[i]));
      if (dx) dx[i] = T(d);
      if (dy) dy[i] = T(-d);
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<mean_squared_error_op, T, Launch> {
  static constexpr u64 workspace_bytes(const op_view& v) { return total_workspace(v.in[0].count()) * sizeof(double); }

  /// x, y of one shape -> the sum of (x - y)^2, scaled
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const detail::squared_difference<T> terms{a.in[0].template as<const T>(), a.in[1].template as<const T>()};
    total<Launch>(c, terms, a.in[0].count(), a.loss_scale, loss_place<T>(a.out), static_cast<double*>(a.workspace),
                  "launch a mean squared error");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    const i64 n = a.in[0].count();
    Launch::items(c, n,
                  detail::squared_error_cotangents<T>{a.in[0].template as<const T>(), a.in[1].template as<const T>(),
                                                      a.d_in[0].template as<T>(), a.d_in[1].template as<T>(), n,
                                                      float(2 * a.loss_scale)},
                  "launch the cotangents of a mean squared error");
  }
};

}  // namespace fusionllm::inline v0
