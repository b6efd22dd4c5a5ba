// SPDX-License-Identifier: Apache-2.0
// Convolution by plain kernels of our own, where cuDNN is not: right, and slow. A member has an output, or a pixel whose
// cotangent it gathers; a team has a weight. Sums of outputs and pixels are in the order of plain loops.
#pragma once

#include <fusionllm/device/reference/convolution.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Where an output of a convolution is, and a pixel.
struct image_place {
  i64 image, channel, row, column;
  FL_HD image_place(i64 at, i64 channels, i64 height, i64 width)
      : image(at / (channels * height * width)), channel(at / (height * width) % channels), row(at / width % height),
        column(at % width) {}
};

template <class T>
struct convolution_forward {
  convolution_shape s;
  const T* x;
  const float *w, *b;  ///< b may be null
  T* y;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, s.images * s.out * s.out_height * s.out_width, [&](i64 at) {
      const image_place p(at, s.out, s.out_height, s.out_width);
      const i64 first = p.image * s.in + p.channel / s.group_out * s.group_in;
      float sum = b ? b[p.channel] : 0.0f;
      for (i64 i = 0; i < s.group_in; ++i)
        for (i64 kr = 0; kr < s.kernel_height; ++kr) {
          const i64 row = p.row * s.stride - s.padding + kr * s.dilation;
          if (row < 0 || row >= s.height) continue;
          for (i64 kc = 0; kc < s.kernel_width; ++kc) {
            const i64 column = p.column * s.stride - s.padding + kc * s.dilation;
            if (column < 0 || column >= s.width) continue;
            sum += float(x[((first + i) * s.height + row) * s.width + column])
                   * w[((p.channel * s.group_in + i) * s.kernel_height + kr) * s.kernel_width + kc];
          }
        }
      y[at] = T(sum);
    });
  }
};

/// Later outputs have earlier taps at a pixel: taps go backwards, so that outputs go forwards.
template <class T>
struct convolution_cotangent {
  convolution_shape s;
  const T* dy;
  const float* w;
  T* dx;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, s.images * s.in * s.height * s.width, [&](i64 at) {
      const image_place p(at, s.in, s.height, s.width);
      const i64 i = p.channel % s.group_in, first = p.channel / s.group_in * s.group_out;
      float sum = 0;
      for (i64 o = first; o < first + s.group_out; ++o)
        for (i64 kr = s.kernel_height - 1; kr >= 0; --kr) {
          const i64 r = position(p.row, kr, s.out_height);
          if (r < 0) continue;
          for (i64 kc = s.kernel_width - 1; kc >= 0; --kc) {
            const i64 c = position(p.column, kc, s.out_width);
            if (c < 0) continue;
            sum += float(dy[((p.image * s.out + o) * s.out_height + r) * s.out_width + c])
                   * w[((o * s.group_in + i) * s.kernel_height + kr) * s.kernel_width + kc];
          }
        }
      dx[at] = T(sum);
    });
  }

 private:
  /// The position whose tap is at a pixel; -1: none.
  FL_HD i64 position(i64 pixel, i64 tap, i64 positions) const {
    const i64 from = pixel + s.padding - tap * s.dilation;
    return from < 0 || from % s.stride != 0 || from / s.stride >= positions ? -1 : from / s.stride;
  }
};

template <class T>
struct convolution_weight_gradient {
  convolution_shape s;
  const T *x, *dy;
  float* dw;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, s.out * s.group_in * s.kernel_height * s.kernel_width, [&](i64 at) {
      const image_place p(at, s.group_in, s.kernel_height, s.kernel_width);  // of a weight: its output is `image`
      const i64 o = p.image, channel = o / s.group_out * s.group_in + p.channel;
      float sum = 0;
      each_member(team, s.images * s.out_height * s.out_width, [&](i64 k) {
        const image_place q(k, 1, s.out_height, s.out_width);
        const i64 row = q.row * s.stride - s.padding + p.row * s.dilation;
        const i64 column = q.column * s.stride - s.padding + p.column * s.dilation;
        if (row < 0 || row >= s.height || column < 0 || column >= s.width) return;
        sum += float(dy[((q.image * s.out + o) * s.out_height + q.row) * s.out_width + q.column])
               * float(x[((q.image * s.in + channel) * s.height + row) * s.width + column]);
      });
      sum = team.sum(sum);
      if (team.rank == 0) dw[at] += sum;
    });
  }
};

template <class T>
struct convolution_bias_gradient {
  const T* dy;
  float* db;
  i64 images, channels, positions;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, channels, [&](i64 c) {
      float sum = 0;
      each_member(team, images * positions, [&](i64 k) {
        sum += float(dy[(k / positions * channels + c) * positions + k % positions]);
      });
      sum = team.sum(sum);
      if (team.rank == 0) db[c] += sum;
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<convolution_op, T, Launch> {
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const auto s = detail::convolution_shape::of(a, a.in[0].dims, a.out.dims);
    Launch::items(c, a.out.count(),
                  detail::convolution_forward<T>{s, a.in[0].template as<const T>(), a.param[0].as<const float>(),
                                                 a.param[1].as<const float>(), a.out.template as<T>()},
                  "launch a convolution");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const auto s = detail::convolution_shape::of(a, a.d_in[0].dims, a.d_out.dims);
    Launch::items(c, a.d_in[0].count(),
                  detail::convolution_cotangent<T>{s, a.d_out.template as<const T>(), a.param[0].as<const float>(),
                                                   a.d_in[0].template as<T>()},
                  "launch the cotangent of a convolution");
  }
  static void backward_weight(typename Launch::context& c, const kernel_args& a) {
    const auto s = detail::convolution_shape::of(a, a.in[0].dims, a.d_out.dims);
    const T* dy = a.d_out.template as<const T>();
    const i64 positions = s.out_height * s.out_width;
    if (a.d_param[0])
      Launch::rows(c, a.param[0].count(), s.images * positions,
                   detail::convolution_weight_gradient<T>{s, a.in[0].template as<const T>(), dy,
                                                          a.d_param[0].as<float>()},
                   "launch the gradient of a convolution");
    if (a.d_param[1])
      Launch::rows(c, s.out, s.images * positions,
                   detail::convolution_bias_gradient<T>{dy, a.d_param[1].as<float>(), s.images, s.out, positions},
                   "launch the gradient of a convolution's bias");
  }
};

}  // namespace fusionllm::inline v0
