// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN's matrix product over pieces of positions, channels and outputs. Its own convolution primitives
// allocate at each call and their weight gradients depend on the number of threads; sgemm does neither.
#pragma once

#include "device.hpp"
#include "gemm.hpp"
#include "image_columns.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<convolution_op, cpu> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) {
    const auto p = columns_of(a, a.in[0].dims, a.out.dims);
    const float *x = a.in[0].as<const float>(), *w = a.param[0].as<const float>(), *b = a.param[1].as<const float>();
    float* y = a.out.as<float>();
    const i64 shares = p.output_shares(p.pieces()), columns = p.most_columns();
    c.each(p.pieces() * p.s.groups * shares, [&](int rank, i64 task) {
      const auto piece = p.piece(task / (p.s.groups * shares));
      const auto [first, outputs] = p.outputs(task % (p.s.groups * shares), shares);
      const i64 n = p.columns(piece), channels = p.channel_block(), from = first / p.s.group_out * p.s.group_in;
      float *col = c.scratch(rank, (channels * p.s.taps() + outputs) * columns),
            *own = col + channels * p.s.taps() * columns;
      float* to = piece.images == 1 ? y + p.output_at(piece, first) : own;
      const i64 stride = piece.images == 1 ? p.s.positions() : n;
      if (p.pointwise()) {
        detail::gemm(outputs, n, p.s.group_in, {w + first * p.k, p.k}, {x + p.input_at(piece, from), p.s.pixels()}, to,
                     stride, false);
      } else {
        for (i64 at = 0; at < p.s.group_in; at += channels) {
          const i64 end = at + channels < p.s.group_in ? at + channels : p.s.group_in;
          p.gather(x, piece, from + at, from + end, col);
          detail::gemm(outputs, n, (end - at) * p.s.taps(), {w + first * p.k + at * p.s.taps(), p.k}, {col, n}, to,
                       stride, at > 0);
        }
      }
      for (i64 o = 0; b && o < outputs; ++o)
        for (i64 i = 0; i < n; ++i) to[o * stride + i] += b[first + o];
      if (to == own) p.scatter_output(own, piece, first, first + outputs, y);
    });
  }

  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    const auto p = columns_of(a, a.d_in[0].dims, a.d_out.dims);
    const float *w = a.param[0].as<const float>(), *dy = a.d_out.as<const float>();
    const float* partial = a.d_partial[0].as<const float>();
    const i64 channels = p.channel_block(), columns = p.most_columns();
    const i64 blocks = (p.s.group_in + channels - 1) / channels;
    c.each(p.groups_of_images() * p.s.groups * blocks, [&](int rank, i64 task) {
      const i64 group = task / blocks % p.s.groups, at = task % blocks * channels, first = group * p.s.group_out;
      const i64 n = at + channels < p.s.group_in ? channels : p.s.group_in - at, from = group * p.s.group_in + at;
      const i64 part_of = task / (blocks * p.s.groups) * p.pieces_of_group();
      const auto whole = p.piece(part_of);
      for (i64 i = 0; i < whole.images; ++i)
        start(dx, partial, ((whole.image + i) * p.s.in + from) * p.s.pixels(), n * p.s.pixels());
      float* col = c.scratch(rank, (n * p.s.taps() + p.s.group_out) * columns);
      for (i64 k = part_of; k < part_of + p.pieces_of_group(); ++k) {
        const auto piece = p.piece(k);
        const detail::matrix d =
            p.output_matrix(dy, piece, first, first + p.s.group_out, col + n * p.s.taps() * columns);
        const detail::matrix taps{w + first * p.k + at * p.s.taps(), p.k, 'T'};
        const i64 m = p.columns(piece);
        if (p.pointwise()) {
          detail::gemm(n, m, p.s.group_out, taps, d, dx + p.input_at(piece, from), p.s.pixels(), true);
          continue;
        }
        detail::gemm(n * p.s.taps(), m, p.s.group_out, taps, d, col, m, false);
        p.scatter_add(col, piece, from, from + n, dx,
                      [&](float* to, const float* x, i64 count) { c.loops.add(to, x, to, count); });
      }
    });
  }

  static void backward_weight(cpu_context& c, const kernel_args& a) {
    const auto p = columns_of(a, a.in[0].dims, a.d_out.dims);
    const float *x = a.in[0].as<const float>(), *dy = a.d_out.as<const float>();
    float *dw = a.d_param[0].as<float>(), *db = a.d_param[1].as<float>();
    const i64 channels = p.weight_block(), columns = p.most_columns();
    const i64 blocks = (p.s.group_in + channels - 1) / channels, shares = p.output_shares(blocks * p.s.groups);
    c.each(dw ? blocks * p.s.groups * shares : 0, [&](int rank, i64 task) {
      const auto [first, outputs] = p.outputs(task % (p.s.groups * shares), shares);
      const i64 at = task / (p.s.groups * shares) * channels, from = first / p.s.group_out * p.s.group_in + at;
      const i64 n = at + channels < p.s.group_in ? channels : p.s.group_in - at;
      float* col = c.scratch(rank, (n * p.s.taps() + outputs) * columns);
      for (i64 k = 0; k < p.pieces(); ++k) {
        const auto piece = p.piece(k);
        const i64 m = p.columns(piece);
        const detail::matrix d = p.output_matrix(dy, piece, first, first + outputs, col + n * p.s.taps() * columns);
        detail::matrix taps{x + p.input_at(piece, from), p.s.pixels(), 'T'};
        if (!p.pointwise()) {
          p.gather(x, piece, from, from + n, col);
          taps = {col, m, 'T'};
        }
        detail::gemm(outputs, n * p.s.taps(), m, d, taps, dw + first * p.k + at * p.s.taps(), p.k, true);
      }
    });
    c.each(db ? p.s.out : 0, [&](int, i64 o) {
      double sum = 0;
      for (i64 i = 0; i < p.s.images; ++i) {
        const float* d = dy + (i * p.s.out + o) * p.s.positions();
        for (i64 k = 0; k < p.s.positions(); ++k) sum += double(d[k]);
      }
      db[o] = float(double(db[o]) + sum);
    });
  }

 private:
  static void start(float* dx, const float* partial, i64 at, i64 n) {
    if (!partial)
      std::memset(dx + at, 0, std::size_t(n) * sizeof(float));
    else if (partial != dx)
      std::memcpy(dx + at, partial + at, std::size_t(n) * sizeof(float));
  }

  static detail::image_columns columns_of(const kernel_args& a, const extents& x, const extents& y) {
    return detail::image_columns(detail::convolution_shape::of(a, x, y));
  }
};

}  // namespace fusionllm::inline v0
