// SPDX-License-Identifier: Apache-2.0
// Softmax over the last dimension, and means: rows over the team.
#pragma once

#include "../reference/softmax.hpp"
#include "../row_args.hpp"
#include "device.hpp"
#include "row_sums.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<softmax_op, cpu> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) {
    const row_args<float> v(a);
    c.each_row(v.rows, [&](i64 r) {
      float rest;
      const float lse = c.loops.log_sum_exp(v.x + r * v.n, v.n, &rest);
      c.loops.softmax_gradient(v.x + r * v.n, lse, rest, 1.0f, v.y + r * v.n, v.n);
    });
  }

  /// dx = y * (dy - the sum of y * dy)
  static void backward_input(cpu_context& c, const kernel_args& a) {
    const row_args<float> v(a);
    if (!v.dx) return;
    c.each_row(v.rows, [&](i64 r) {
      const float *y = v.y + r * v.n, *dy = v.dy + r * v.n, *p = v.partial ? v.partial + r * v.n : nullptr;
      float* dx = v.dx + r * v.n;
      const float sum = c.loops.dot(y, dy, v.n);
      for (i64 i = 0; i < v.n; ++i) dx[i] = (p ? p[i] : 0.0f) + y[i] * (dy[i] - sum);
    });
  }
};

template <>
struct kernel<mean_op, cpu> {
  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.out.count(), n = a.in[0].count() / rows;
    const float* x = a.in[0].as<const float>();
    float* y = a.out.as<float>();
    c.each_row(rows, [&](i64 r) {
      y[r] = float(detail::sum_in_columns(n, [&](i64 i) { return double(x[r * n + i]); }) / double(n));
    });
  }

  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    const i64 n = a.d_in[0].count() / a.d_out.count();
    const float* dy = a.d_out.as<const float>();
    c.each_row(a.d_out.count(), [&](i64 r) {
      const float d = dy[r] / float(n);
      for (i64 i = r * n; i < (r + 1) * n; ++i) dx[i] = d;
    });
  }
};

}  // namespace fusionllm::inline v0
