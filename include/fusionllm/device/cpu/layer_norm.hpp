// SPDX-License-Identifier: Apache-2.0
// Layer normalization: rows over the team, gradients of weight and bias by columns over the team.
#pragma once

#include "../../ops/layer_norm.hpp"
#include "../row_args.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<layer_norm_op, cpu> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) {
    const row_args<float> v(a);
    c.team.split(v.rows, 8, [&](i64 begin, i64 end) {
      float* saved = v.saved ? v.saved + begin : nullptr;
      c.loops.layer_norm(v.x + begin * v.n, v.weight, v.bias, float(a.op->attr.x), v.y + begin * v.n, saved,
                         saved ? saved + v.rows : nullptr, end - begin, v.n);
    });
  }

  static void backward_input(cpu_context& c, const kernel_args& a) {
    const row_args<float> v(a);
    if (!v.dx) return;
    c.team.split(v.rows, 8, [&](i64 begin, i64 end) {
      const i64 at = begin * v.n;
      c.loops.layer_norm_backward(v.x + at, v.dy + at, v.weight, v.saved + begin, v.saved + v.rows + begin,
                                  v.partial ? v.partial + at : nullptr, v.dx + at, end - begin, v.n);
    });
  }

  static void backward_weight(cpu_context& c, const kernel_args& a) {
    const row_args<float> v(a);
    c.add_by_columns(v.n, a.d_param[0].as<float>(), [&](i64 from, i64 to, double* sums) {
      c.loops.layer_norm_weight(v.x + from, v.dy + from, v.saved, v.saved + v.rows, v.rows, v.n, to - from, sums);
    });
    c.add_by_columns(v.n, a.d_param[1].as<float>(), [&](i64 from, i64 to, double* sums) {
      c.loops.add_column_sums(v.dy + from, v.rows, v.n, to - from, sums);
    });
  }
};

}  // namespace fusionllm::inline v0
