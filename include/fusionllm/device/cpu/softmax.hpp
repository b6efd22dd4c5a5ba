// SPDX-License-Identifier: Apache-2.0
// Softmax over the last dimension, and means: rows over the team.
#pragma once

#include "../reference/softmax.hpp"
#include "device.hpp"
#include "row_sums.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<softmax_op, cpu> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), n = a.out.dims.last();
    const float* x = a.in[0].as<const float>();
    float* y = a.out.as<float>();
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        float rest;
        const float lse = c.loops.log_sum_exp(x + r * n, n, &rest);
        c.loops.softmax_gradient(x + r * n, lse, rest, 1.0f, y + r * n, n);
      }
    });
  }

  /// dx = y * (dy - the sum of y * dy)
  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const float *y = a.out.as<const float>(), *dy = a.d_out.as<const float>(), *p = a.d_partial[0].as<const float>();
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const float sum = c.loops.dot(y + r * n, dy + r * n, n);
        for (i64 i = r * n; i < (r + 1) * n; ++i) dx[i] = (p ? p[i] : 0.0f) + y[i] * (dy[i] - sum);
      }
    });
  }
};

template <>
struct kernel<mean_op, cpu> {
  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.out.count(), n = a.in[0].count() / rows;
    const float* x = a.in[0].as<const float>();
    float* y = a.out.as<float>();
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r)
        y[r] = float(detail::sum_in_columns(n, [&](i64 i) { return double(x[r * n + i]); }) / double(n));
    });
  }

  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    const i64 n = a.d_in[0].count() / a.d_out.count();
    const float* dy = a.d_out.as<const float>();
    c.team.split(a.d_out.count(), 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const float d = dy[r] / float(n);
        for (i64 i = r * n; i < (r + 1) * n; ++i) dx[i] = d;
      }
    });
  }
};

}  // namespace fusionllm::inline v0
