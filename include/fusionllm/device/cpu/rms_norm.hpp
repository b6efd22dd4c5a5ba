// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization: rows over the team, gradients of the weight by columns over the team.
#pragma once

#include "../../ops/rms_norm.hpp"
#include "../row_args.hpp"
#include "device.hpp"
#include "row_sums.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<rms_norm_op, cpu> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) {
    const row_args<float> v(a);
    c.each_row(v.rows, [&](i64 r) {
      const float* x = v.x + r * v.n;
      float* y = v.y + r * v.n;
      const float q = 1.0f / std::sqrt(c.loops.dot(x, x, v.n) / float(v.n) + float(a.op->attr.x));
      c.loops.multiply(x, v.weight, y, v.n);
      c.loops.scale(y, v.n, q);
      if (v.saved) v.saved[r] = q;
    });
  }

  /// With g = dy * weight and h = x * q: dx = q * (g - h * mean(g * h)).
  static void backward_input(cpu_context& c, const kernel_args& a) {
    const row_args<float> v(a);
    if (!v.dx) return;
    c.each_row(v.rows, [&](i64 r) {
      const i64 n = v.n;
      const float *x = v.x + r * n, *dy = v.dy + r * n, *w = v.weight, *p = v.partial ? v.partial + r * n : nullptr;
      float* dx = v.dx + r * n;
      const float q = v.saved[r];
      const float gh = detail::sum_in_columns(n, [&](i64 i) { return dy[i] * w[i] * (x[i] * q); }) / float(n);
      for (i64 i = 0; i < n; ++i) dx[i] = (p ? p[i] : 0.0f) + q * (dy[i] * w[i] - x[i] * q * gh);
    });
  }

  static void backward_weight(cpu_context& c, const kernel_args& a) {
    const row_args<float> v(a);
    c.add_by_columns(v.n, a.d_param[0].as<float>(), [&](i64 from, i64 to, double* sums) {
      for (i64 r = 0; r < v.rows; ++r) {
        const float *x = v.x + r * v.n, *dy = v.dy + r * v.n, q = v.saved[r];
        for (i64 i = from; i < to; ++i) sums[i - from] += double(dy[i] * (x[i] * q));
      }
    });
  }
};

}  // namespace fusionllm::inline v0
