// SPDX-License-Identifier: Apache-2.0
// Rows by token, and learned positions. Gradients go by columns over the team, in ascending order of rows.
#pragma once

#include "../../ops/embedding.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<embedding_op, cpu> {
  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 n = a.out.dims.last();
    const auto* token = a.in[0].as<const std::int32_t>();
    const float* table = a.param[0].as<const float>();
    float* out = a.out.as<float>();
    c.team.split(a.in[0].count(), 16, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) std::memcpy(out + i * n, table + token[i] * n, std::size_t(n) * sizeof(float));
    });
  }
  static void backward_weight(cpu_context& c, const kernel_args& a) {
    float* dt = a.d_param[0].as<float>();
    if (!dt) return;
    const i64 n = a.d_out.dims.last(), rows = a.in[0].count();
    const auto* token = a.in[0].as<const std::int32_t>();
    const float* d = a.d_out.as<const float>();
    c.team.split(n, 16, [&](i64 from, i64 to) {
      for (i64 i = 0; i < rows; ++i)
        c.loops.add(dt + token[i] * n + from, d + i * n + from, dt + token[i] * n + from, to - from);
    });
  }
};

template <>
struct kernel<positions_op, cpu> {
  static constexpr bool adds_partial = true;
  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 row = a.out.dims.d[1] * a.out.dims.d[2], n = a.out.dims.d[2];
    const float *x = a.in[0].as<const float>(), *table = a.param[0].as<const float>() + a.past * n;
    float* out = a.out.as<float>();
    c.team.split(a.out.dims.rows(), 16, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) c.loops.add(x + i * n, table + i * n % row, out + i * n, n);
    });
  }
  static void backward_input(cpu_context& c, const kernel_args& a) {
    const float *d = a.d_out.as<const float>(), *p = a.d_partial[0].as<const float>();
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    c.team.split(a.d_out.count(), 1024, [&](i64 begin, i64 end) {
      if (p)
        c.loops.add(p + begin, d + begin, dx + begin, end - begin);
      else
        std::memcpy(dx + begin, d + begin, std::size_t(end - begin) * sizeof(float));
    });
  }
  static void backward_weight(cpu_context& c, const kernel_args& a) {
    const i64 row = a.d_out.dims.d[1] * a.d_out.dims.d[2];
    c.add_by_columns(row, a.d_param[0].as<float>(), [&](i64 from, i64 to, double* sums) {
      c.loops.add_column_sums(a.d_out.as<const float>() + from, a.d_out.dims.d[0], row, to - from, sums);
    });
  }
};

}  // namespace fusionllm::inline v0
