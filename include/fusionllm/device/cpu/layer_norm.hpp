// SPDX-License-Identifier: Apache-2.0
// Layer normalization: rows over the team, gradients of weight and bias by columns over the team.
#pragma once

#include "../../ops/layer_norm.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<layer_norm_op, cpu> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), n = a.out.dims.last();
    const float* x = a.in[0].as<const float>();
    float *y = a.out.as<float>(), *saved = static_cast<float*>(a.saved);
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      c.loops.layer_norm(x + begin * n, a.param[0].as<const float>(), a.param[1].as<const float>(), float(a.op->attr.x),
                         y + begin * n, saved ? saved + begin : nullptr, saved ? saved + rows + begin : nullptr,
                         end - begin, n);
    });
  }

  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const float *x = a.in[0].as<const float>(), *dy = a.d_out.as<const float>(), *w = a.param[0].as<const float>();
    const float *saved = static_cast<const float*>(a.saved), *partial = a.d_partial[0].as<const float>();
    c.team.split(rows, 8, [&](i64 begin, i64 end) {
      c.loops.layer_norm_backward(x + begin * n, dy + begin * n, w, saved + begin, saved + rows + begin,
                                  partial ? partial + begin * n : nullptr, dx + begin * n, end - begin, n);
    });
  }

  static void backward_weight(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const float *x = a.in[0].as<const float>(), *dy = a.d_out.as<const float>();
    const float* saved = static_cast<const float*>(a.saved);
    c.add_by_columns(n, a.d_param[0].as<float>(), [&](i64 from, i64 to, double* sums) {
      c.loops.layer_norm_weight(x + from, dy + from, saved, saved + rows, rows, n, to - from, sums);
    });
    c.add_by_columns(n, a.d_param[1].as<float>(), [&](i64 from, i64 to, double* sums) {
      c.loops.add_column_sums(dy + from, rows, n, to - from, sums);
    });
  }
};

}  // namespace fusionllm::inline v0
