// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization: a team a row.
#pragma once

#include <cmath>

#include <fusionllm/ops/rms_norm.hpp>

#include "row_totals.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct rms_norm_forward {
  const T* x;
  const float* weight;
  T* out;
  float* saved;  ///< null: not wanted; else the reciprocal roots
  i64 rows, n;
  float epsilon;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T* from = x + r * n;
      T* to = out + r * n;
      float squares = 0;
      each_member(team, n, [&](i64 i) { squares += float(from[i]) * float(from[i]); });
      const float q = 1.0f / std::sqrt(team.sum(squares) / float(n) + epsilon);
      each_member(team, n, [&](i64 i) { to[i] = T(float(from[i]) * q * weight[i]); });
      if (saved && team.rank == 0) saved[r] = q;
    });
  }
};

template <class T>
struct rms_norm_cotangent {
  const T *x, *dy;
  const float *weight, *saved;
  T* dx;
  i64 rows, n;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T *from = x + r * n, *d = dy + r * n;
      T* to = dx + r * n;
      const float q = saved[r];
      float sum = 0;
      each_member(team, n, [&](i64 i) { sum += float(d[i]) * weight[i] * (float(from[i]) * q); });
      const float mean = team.sum(sum) / float(n);
      each_member(team, n, [&](i64 i) { to[i] = T(q * (float(d[i]) * weight[i] - float(from[i]) * q * mean)); });
    });
  }
};

template <class T>
struct rms_norm_terms {
  const T *x, *dy;
  const float* saved;
  i64 n;
  FL_HD void operator()(i64 r, i64 i, float (&v)[1]) const {
    v[0] = float(dy[r * n + i]) * (float(x[r * n + i]) * saved[r]);
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<rms_norm_op, T, Launch> {
  static constexpr u64 workspace_bytes(const op_view& v) {
    return row_totals_workspace<1>(v.out.rows(), v.out.last()) * sizeof(float);
  }

  /// x (rows, features), weight (features) -> x * q * weight with q = 1 / sqrt(mean(x^2) + epsilon)
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), n = a.out.dims.last();
    Launch::rows(c, rows, n,
                 detail::rms_norm_forward<T>{a.in[0].template as<const T>(), a.param[0].as<const float>(),
                                             a.out.template as<T>(), static_cast<float*>(a.saved), rows, n,
                                             float(a.op->attr.x)},
                 "launch an rms norm");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    Launch::rows(c, rows, n,
                 detail::rms_norm_cotangent<T>{a.in[0].template as<const T>(), a.d_out.template as<const T>(),
                                               a.param[0].as<const float>(), static_cast<const float*>(a.saved),
                                               a.d_in[0].template as<T>(), rows, n},
                 "launch the cotangent of an rms norm");
  }
  static void backward_weight(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_param[0]) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const detail::rms_norm_terms<T> terms{a.in[0].template as<const T>(), a.d_out.template as<const T>(),
                                          static_cast<const float*>(a.saved), n};
    row_totals<Launch>(c, terms, rows, n, {a.d_param[0].as<float>()}, static_cast<float*>(a.workspace),
                       "launch the gradient of an rms norm");
  }
};

}  // namespace fusionllm::inline v0
