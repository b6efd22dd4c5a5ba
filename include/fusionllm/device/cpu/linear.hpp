// SPDX-License-Identifier: Apache-2.0
// y = x W^T + b by oneDNN's matrix product, in pieces of rows (forward, d(input)) or of outputs (d(weight)).
#pragma once

#include "../../ops/linear.hpp"
#include "device.hpp"
#include "gemm.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<linear_op, cpu> {
  static constexpr bool adds_partial = true;

  /// x (rows, in), W (out, in), b (out) or absent -> y (rows, out)
  static void forward(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), in = a.in[0].dims.last(), out = a.out.dims.last();
    const float *x = a.in[0].as<const float>(), *w = a.param[0].as<const float>(), *b = a.param[1].as<const float>();
    float* y = a.out.as<float>();
    c.pieces(rows, piece_of(rows), [&](i64 begin, i64 end) {
      if (b)
        for (i64 r = begin; r < end; ++r) std::memcpy(y + r * out, b, std::size_t(out) * sizeof(float));
      detail::gemm(end - begin, out, in, {x + begin * in, in}, {w, in, 'T'}, y + begin * out, out, b != nullptr);
    });
  }

  /// dx = dy W
  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    const i64 rows = a.d_out.dims.rows(), in = a.d_in[0].dims.last(), out = a.d_out.dims.last();
    const float *w = a.param[0].as<const float>(), *dy = a.d_out.as<const float>();
    const float* partial = a.d_partial[0].as<const float>();
    c.pieces(rows, piece_of(rows), [&](i64 begin, i64 end) {
      if (partial && partial != dx)
        std::memcpy(dx + begin * in, partial + begin * in, std::size_t((end - begin) * in) * sizeof(float));
      detail::gemm(end - begin, in, out, {dy + begin * out, out}, {w, in}, dx + begin * in, in, partial != nullptr);
    });
  }

  /// dW += dy^T x, db += sum of dy over rows
  static void backward_weight(cpu_context& c, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), in = a.in[0].dims.last(), out = a.d_out.dims.last();
    const float *x = a.in[0].as<const float>(), *dy = a.d_out.as<const float>();
    float *dw = a.d_param[0].as<float>(), *db = a.d_param[1].as<float>();
    c.pieces(out, piece_of(out), [&](i64 from, i64 to) {
      if (db) c.loops.add_column_sums(dy, rows, out, from, to, db);
      if (dw) detail::gemm(to - from, in, rows, {dy + from, out, 'T'}, {x, in}, dw + from * in, in, true);
    });
  }

 private:
  // Large enough for sgemm's speed, small enough for eight threads; a function of the shape only.
  static i64 piece_of(i64 n) {
    const i64 eighth = (n / 8 + 31) / 32 * 32;
    return eighth < 64 ? 64 : eighth > 256 ? 256 : eighth;
  }
};

}  // namespace fusionllm::inline v0
