// SPDX-License-Identifier: Apache-2.0
// Convolution in plain loops over images, outputs, positions and taps.
#pragma once

#include "../../ops/convolution.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// The numbers of a convolution, from the arguments of its kernel. d: the extents of the output.
struct convolution_shape {
  i64 images, in, height, width;  ///< of the input
  i64 out, out_height, out_width;
  i64 groups, group_in, group_out, kernel_height, kernel_width;
  i64 stride, padding, dilation;

  static convolution_shape of(const kernel_args& a, const extents& x, const extents& d) {
    const extents& w = a.param[0].dims;
    const auto& n = a.op->attr.n;
    const i64 groups = x.d[1] / w.d[1];
    return {x.d[0], x.d[1],          x.d[2], x.d[3], d.d[1], d.d[2], d.d[3], groups,
            w.d[1], w.d[0] / groups, w.d[2], w.d[3], n[0],   n[1],   n[2]};
  }
  i64 pixels() const { return height * width; }
  i64 positions() const { return out_height * out_width; }
  i64 taps() const { return kernel_height * kernel_width; }

  /// Calls f(at in x, at in y, at in w) for every product of the convolution: outputs in order, taps in order.
  template <class F>
  void each(F&& f) const {
    for (i64 n = 0; n < images; ++n)
      for (i64 o = 0; o < out; ++o)
        for (i64 r = 0; r < out_height; ++r)
          for (i64 c = 0; c < out_width; ++c) each_tap(n, o, r, c, f);
  }
  template <class F>
  void each_tap(i64 n, i64 o, i64 r, i64 c, F&& f) const {
    const i64 y = ((n * out + o) * out_height + r) * out_width + c, first = o / group_out * group_in;
    for (i64 i = 0; i < group_in; ++i)
      for (i64 kr = 0; kr < kernel_height; ++kr) {
        const i64 xr = r * stride - padding + kr * dilation;
        if (xr < 0 || xr >= height) continue;
        for (i64 kc = 0; kc < kernel_width; ++kc) {
          const i64 xc = c * stride - padding + kc * dilation;
          if (xc < 0 || xc >= width) continue;
          f(((n * in + first + i) * height + xr) * width + xc, y,
            ((o * group_in + i) * kernel_height + kr) * kernel_width + kc);
        }
      }
  }
};

}  // namespace detail

template <class T>
struct plain_kernel<convolution_op, T> {
  static void forward(device_context&, const kernel_args& a) {
    const auto s = detail::convolution_shape::of(a, a.in[0].dims, a.out.dims);
    const T* x = a.in[0].template as<const T>();
    const T* w = a.param[0].template as<const T>();
    const T* b = a.param[1].template as<const T>();
    T* y = a.out.template as<T>();
    for (i64 i = 0; i < a.out.count(); ++i) y[i] = b ? b[i / s.positions() % s.out] : T(0);
    s.each([&](i64 at_x, i64 at_y, i64 at_w) { y[at_y] += x[at_x] * w[at_w]; });
  }

  static void backward_input(device_context&, const kernel_args& a) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const auto s = detail::convolution_shape::of(a, a.d_in[0].dims, a.d_out.dims);
    const T* w = a.param[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    for (i64 i = 0; i < a.d_in[0].count(); ++i) dx[i] = 0;
    s.each([&](i64 at_x, i64 at_y, i64 at_w) { dx[at_x] += dy[at_y] * w[at_w]; });
  }

  static void backward_weight(device_context&, const kernel_args& a) {
    const auto s = detail::convolution_shape::of(a, a.in[0].dims, a.d_out.dims);
    const T* x = a.in[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    T* dw = a.d_param[0].template as<T>();
    T* db = a.d_param[1].template as<T>();
    if (dw) s.each([&](i64 at_x, i64 at_y, i64 at_w) { dw[at_w] += dy[at_y] * x[at_x]; });
    for (i64 i = 0; db && i < a.d_out.count(); ++i) db[i / s.positions() % s.out] += dy[i];
  }
};

}  // namespace fusionllm::inline v0
