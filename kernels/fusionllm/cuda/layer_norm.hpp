// SPDX-License-Identifier: Apache-2.0
// Layer normalization: a team a row, statistics in two passes over a row that the caches hold.
#pragma once

#include <cmath>

#include <fusionllm/ops/layer_norm.hpp>

#include "row_totals.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct layer_norm_forward {
  const T* x;
  const float *weight, *bias;
  T* out;
  float* saved;  ///< null: not wanted; else means, then reciprocals
  i64 rows, n;
  float epsilon;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T* from = x + r * n;
      T* to = out + r * n;
      float sum = 0, squares = 0;
      each_member(team, n, [&](i64 i) { sum += float(from[i]); });
      const float mean = team.sum(sum) / float(n);
      each_member(team, n, [&](i64 i) { squares += (float(from[i]) - mean) * (float(from[i]) - mean); });
      const float reciprocal = 1.0f / std::sqrt(team.sum(squares) / float(n) + epsilon);
      each_member(team, n, [&](i64 i) { to[i] = T((float(from[i]) - mean) * reciprocal * weight[i] + bias[i]); });
      if (!saved || team.rank != 0) return;
      saved[r] = mean;
      saved[rows + r] = reciprocal;
    });
  }
};

template <class T>
struct layer_norm_cotangent {
  const T *x, *dy;
  const float *weight, *saved;
  T* dx;
  i64 rows, n;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T *from = x + r * n, *d = dy + r * n;
      T* to = dx + r * n;
      const float mean = saved[r], reciprocal = saved[rows + r];
      float g_sum = 0, gh_sum = 0;
      each_member(team, n, [&](i64 i) {
        const float g = float(d[i]) * weight[i];
        g_sum += g;
        gh_sum += g * ((float(from[i]) - mean) * reciprocal);
      });
      const float g_mean = team.sum(g_sum) / float(n), gh_mean = team.sum(gh_sum) / float(n);
      each_member(team, n, [&](i64 i) {
        const float h = (float(from[i]) - mean) * reciprocal;
        to[i] = T(reciprocal * (float(d[i]) * weight[i] - g_mean - h * gh_mean));
      });
    });
  }
};

/// Of one element: what it adds to the gradients of weight and bias.
template <class T>
struct layer_norm_terms {
  const T *x, *dy;
  const float* saved;
  i64 rows, n;
  FL_HD void operator()(i64 r, i64 i, float (&v)[2]) const {
    v[1] = float(dy[r * n + i]);
    v[0] = v[1] * ((float(x[r * n + i]) - saved[r]) * saved[rows + r]);
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<layer_norm_op, T, Launch> {
  static constexpr u64 workspace_bytes(const op_view& v) {
    return row_totals_workspace<2>(v.out.rows(), v.out.last()) * sizeof(float);
  }

  /// x (rows, features), weight and bias (features) -> (x - mean) / sqrt(variance + epsilon) * weight + bias
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), n = a.out.dims.last();
    Launch::rows(c, rows, n,
                 detail::layer_norm_forward<T>{a.in[0].template as<const T>(), a.param[0].as<const float>(),
                                               a.param[1].as<const float>(), a.out.template as<T>(),
                                               static_cast<float*>(a.saved), rows, n, float(a.op->attr.x)},
                 "launch a layer norm");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    Launch::rows(c, rows, n,
                 detail::layer_norm_cotangent<T>{a.in[0].template as<const T>(), a.d_out.template as<const T>(),
                                                 a.param[0].as<const float>(), static_cast<const float*>(a.saved),
                                                 a.d_in[0].template as<T>(), rows, n},
                 "launch the cotangent of a layer norm");
  }
  static void backward_weight(typename Launch::context& c, const kernel_args& a) {
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const detail::layer_norm_terms<T> terms{a.in[0].template as<const T>(), a.d_out.template as<const T>(),
                                            static_cast<const float*>(a.saved), rows, n};
    row_totals<Launch>(c, terms, rows, n, {a.d_param[0].as<float>(), a.d_param[1].as<float>()},
                       static_cast<float*>(a.workspace), "launch the gradients of a layer norm");
  }
};

}  // namespace fusionllm::inline v0
