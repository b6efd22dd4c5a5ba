// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy over rows of logits, and mean squared error. A row that does not count adds exactly 0; the sum
// over rows is formed in double, in their order.
#pragma once

#include "../reference/loss.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<cross_entropy_op, cpu> {
  static u64 workspace_bytes(const op_view& v) { return 2 * u64(v.in[1].count()) * sizeof(float); }

  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), n = a.in[0].dims.last();
    const float* x = a.in[0].as<const float>();
    const auto* target = a.in[1].as<const std::int32_t>();
    float* lse = static_cast<float*>(a.saved ? a.saved : a.workspace);
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) lse[r] = c.loops.log_sum_exp(x + r * n, n, lse + rows + r);
    });
    const double smoothing = a.op->attr.x;
    double sum = 0;
    for (i64 r = 0; r < rows; ++r) {
      if (target[r] == a.op->attr.n[0]) continue;
      sum += double(lse[r]) + double(lse[rows + r]) - (1 - smoothing) * double(x[r * n + target[r]]);
      if (smoothing != 0) sum -= smoothing * detail::mean_in_double(x + r * n, n);
    }
    *a.out.as<float>() = sum == 0 ? 0.0f : float(sum * a.loss_scale);
  }

  /// May lie over the logits.
  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* d = a.d_in[0].as<float>();
    if (!d) return;
    const i64 rows = a.in[0].dims.rows(), n = a.in[0].dims.last();
    const float *x = a.in[0].as<const float>(), *lse = static_cast<const float*>(a.saved);
    const auto* target = a.in[1].as<const std::int32_t>();
    const float scale = float(a.loss_scale), at_target = float(a.loss_scale * (1 - a.op->attr.x));
    const float spread = float(a.loss_scale * a.op->attr.x / double(n));
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        if (target[r] == a.op->attr.n[0]) {
          std::memset(d + r * n, 0, std::size_t(n) * sizeof(float));
        } else {
          c.loops.softmax_gradient(x + r * n, lse[r], lse[rows + r], scale, d + r * n, n);
          for (i64 i = 0; spread != 0 && i < n; ++i) d[r * n + i] -= spread;
          d[r * n + target[r]] -= at_target;
        }
      }
    });
  }
};

template <>
struct kernel<mean_squared_error_op, cpu> : plain_kernel<mean_squared_error_op, float> {};

}  // namespace fusionllm::inline v0
