// SPDX-License-Identifier: Apache-2.0
// y = x W^T + b by oneDNN's matrix product, in pieces of rows (forward, d(input)) or of outputs (d(weight)). The sizes
// of pieces are functions of the shape alone, large enough for sgemm's speed.
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
    if (rows < transposing_pays) return products(c, rows, in, out, {x, in}, {w, in, 'T'}, b, y, out);
    // A panel of W transposed once is cheaper than in every piece's product.
    float* t = c.shared_scratch(in * (out < panel ? out : panel));
    for (i64 at = 0; at < out; at += panel) {
      const i64 n = out - at < panel ? out - at : panel;
      c.pieces(n, 32, [&](i64 from, i64 to) { c.loops.transpose(w + at * in, n, in, from, to, t); });
      products(c, rows, in, n, {x, in}, {t, n}, b ? b + at : nullptr, y + at, out);
    }
  }

  /// dx = dy W
  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    const i64 rows = a.d_out.dims.rows(), in = a.d_in[0].dims.last(), out = a.d_out.dims.last();
    const float *w = a.param[0].as<const float>(), *dy = a.d_out.as<const float>();
    const float* partial = a.d_partial[0].as<const float>();
    c.pieces(rows, row_piece(rows), [&](i64 begin, i64 end) {
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
    c.pieces(out, output_piece(out), [&](i64 from, i64 to) {
      double sums[largest_output_piece] = {};
      for (i64 r = 0; r < rows; r += rows_at_once) {
        const i64 k = r + rows_at_once < rows ? rows_at_once : rows - r;
        const float* d = dy + r * out + from;
        if (dw) detail::gemm(to - from, in, k, {d, out, 'T'}, {x + r * in, in}, dw + from * in, in, true);
        if (db) c.loops.add_column_sums(d, k, out, to - from, sums);
      }
      for (i64 i = from; db && i < to; ++i) db[i] = float(double(db[i]) + sums[i - from]);
    });
  }

 private:
  static constexpr i64 transposing_pays = 512;  ///< rows
  static constexpr i64 rows_at_once = 128;      ///< what a piece of d(weight) reads of dy stays in cache
  static constexpr i64 largest_output_piece = 256;

  static constexpr i64 panel = 2048;  ///< outputs

  /// y (rows, n), rows `stride` apart, = x (rows, in) w (in, n) + b
  static void products(cpu_context& c, i64 rows, i64 in, i64 n, detail::matrix x, detail::matrix w, const float* b,
                       float* y, i64 stride) {
    c.pieces(rows, row_piece(rows), [&](i64 begin, i64 end) {
      detail::gemm(end - begin, n, in, {x.data + begin * x.stride, x.stride}, w, y + begin * stride, stride, false);
      for (i64 r = begin; b && r < end; ++r) c.loops.add(y + r * stride, b, y + r * stride, n);
    });
  }

  static i64 rounded(i64 n, i64 least, i64 most) {
    const i64 r = (n + 31) / 32 * 32;
    return r < least ? least : r > most ? most : r;
  }
  static i64 row_piece(i64 rows) { return rows < transposing_pays ? rounded(rows / 2, 32, 128) : 64; }
  static i64 output_piece(i64 out) {
    return out <= 256 ? rounded(out / 2, 64, 128) : rounded(out / 4, 128, largest_output_piece);
  }
};

}  // namespace fusionllm::inline v0
