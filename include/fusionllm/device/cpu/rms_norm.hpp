// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization: rows over the team, gradients of the weight by columns over the team.
#pragma once

#include "../../ops/rms_norm.hpp"
#include "device.hpp"
#include "row_sums.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<rms_norm_op, cpu> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), n = a.out.dims.last();
    const float *x = a.in[0].as<const float>(), *w = a.param[0].as<const float>();
    float *y = a.out.as<float>(), *saved = static_cast<float*>(a.saved);
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const float q = 1.0f / std::sqrt(c.loops.dot(x + r * n, x + r * n, n) / float(n) + float(a.op->attr.x));
        c.loops.multiply(x + r * n, w, y + r * n, n);
        c.loops.scale(y + r * n, n, q);
        if (saved) saved[r] = q;
      }
    });
  }

  /// With g = dy * weight and h = x * q: dx = q * (g - h * mean(g * h)).
  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* d_in = a.d_in[0].as<float>();
    if (!d_in) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const float* w = a.param[0].as<const float>();
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const float *x = a.in[0].as<const float>() + r * n, *dy = a.d_out.as<const float>() + r * n;
        const float* p = a.d_partial[0] ? a.d_partial[0].as<const float>() + r * n : nullptr;
        float* dx = d_in + r * n;
        const float q = static_cast<const float*>(a.saved)[r];
        const float gh = detail::sum_in_columns(n, [&](i64 i) { return dy[i] * w[i] * (x[i] * q); }) / float(n);
        for (i64 i = 0; i < n; ++i) dx[i] = (p ? p[i] : 0.0f) + q * (dy[i] * w[i] - x[i] * q * gh);
      }
    });
  }

  static void backward_weight(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const float *x = a.in[0].as<const float>(), *dy = a.d_out.as<const float>();
    const float* saved = static_cast<const float*>(a.saved);
    c.add_by_columns(n, a.d_param[0].as<float>(), [&](i64 from, i64 to, double* sums) {
      for (i64 r = 0; r < rows; ++r)
        for (i64 i = from; i < to; ++i) sums[i - from] += double(dy[r * n + i] * (x[r * n + i] * saved[r]));
    });
  }
};

}  // namespace fusionllm::inline v0
