// SPDX-License-Identifier: Apache-2.0
// Pooling in plain loops, a plane (one channel of one image) after the other; devices may share planes among threads.
#pragma once

#include <cmath>

#include "../../ops/pooling.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// The extents of a pool's planes: `x` outer, `y` pooled.
struct pool_shape {
  i64 planes, height, width, out_height, out_width, kernel, stride, padding;
  pool_shape(const extents& x, const extents& y, const attributes& a)
      : planes(x.d[0] * x.d[1]),
        height(x.d[2]),
        width(x.d[3]),
        out_height(y.d[2]),
        out_width(y.d[3]),
        kernel(a.n[2]),
        stride(a.n[0]),
        padding(a.n[1]) {}
  i64 pixels() const { return height * width; }
  i64 positions() const { return out_height * out_width; }

  /// Calls f(pixel, tap) for the taps of the window at (r, c) that lie on the image.
  template <class F>
  void each_tap(i64 r, i64 c, F&& f) const {
    for (i64 i = 0; i < kernel; ++i) {
      const i64 row = r * stride - padding + i;
      if (row < 0 || row >= height) continue;
      for (i64 j = 0; j < kernel; ++j) {
        const i64 column = c * stride - padding + j;
        if (column >= 0 && column < width) f(row * width + column, i * kernel + j);
      }
    }
  }
  /// The pixel at a tap of the window at (r, c).
  i64 pixel(i64 r, i64 c, i64 tap) const {
    return (r * stride - padding + tap / kernel) * width + c * stride - padding + tap % kernel;
  }
};

/// Runs planes [0, planes) in order.
struct all_planes {
  template <class F>
  void operator()(i64 planes, F&& f) const {
    f(i64(0), planes);
  }
};

}  // namespace detail

template <class T>
struct plain_kernel<max_pool_op, T> {
  static void forward(device_context&, const kernel_args& a) { forward(a, detail::all_planes{}); }
  static void backward_input(device_context&, const kernel_args& a) { backward_input(a, detail::all_planes{}); }

  template <class Planes>
  static void forward(const kernel_args& a, Planes&& run) {
    const detail::pool_shape s(a.in[0].dims, a.out.dims, a.op->attr);
    if (max_pool_op::index_bytes(a.op->attr) == 1) forward_with<u8>(a, s, run);
    else forward_with<u16>(a, s, run);
  }
  template <class Planes>
  static void backward_input(const kernel_args& a, Planes&& run) {
    if (!a.d_in[0]) return;
    const detail::pool_shape s(a.d_in[0].dims, a.d_out.dims, a.op->attr);
    if (max_pool_op::index_bytes(a.op->attr) == 1) backward_with<u8>(a, s, run);
    else backward_with<u16>(a, s, run);
  }

 private:
  template <class Index, class Planes>
  static void forward_with(const kernel_args& a, const detail::pool_shape& s, Planes&& run) {
    const T* in = a.in[0].template as<const T>();
    T* out = a.out.template as<T>();
    auto* index = static_cast<Index*>(a.saved);
    run(s.planes, [&](i64 begin, i64 end) {
      for (i64 p = begin; p < end; ++p) {
        const T* x = in + p * s.pixels();
        for (i64 at = 0; at < s.positions(); ++at) {
          T largest = 0;
          i64 from = -1;
          s.each_tap(at / s.out_width, at % s.out_width, [&](i64 pixel, i64 tap) {
            if (from >= 0 && !(x[pixel] > largest) && !(x[pixel] != x[pixel])) return;
            largest = x[pixel];
            from = tap;
          });
          out[p * s.positions() + at] = largest;
          if (index) index[p * s.positions() + at] = Index(from);
        }
      }
    });
  }
  template <class Index, class Planes>
  static void backward_with(const kernel_args& a, const detail::pool_shape& s, Planes&& run) {
    T* in = a.d_in[0].template as<T>();
    const T* d = a.d_out.template as<const T>();
    const auto* index = static_cast<const Index*>(a.saved);
    run(s.planes, [&](i64 begin, i64 end) {
      for (i64 p = begin; p < end; ++p) {
        T* dx = in + p * s.pixels();
        for (i64 i = 0; i < s.pixels(); ++i) dx[i] = 0;
        for (i64 at = 0, y = p * s.positions(); at < s.positions(); ++at, ++y)
          dx[s.pixel(at / s.out_width, at % s.out_width, i64(index[y]))] += d[y];
      }
    });
  }
};

template <class T>
struct plain_kernel<average_pool_op, T> {
  static void forward(device_context&, const kernel_args& a) { forward(a, detail::all_planes{}); }
  static void backward_input(device_context&, const kernel_args& a) { backward_input(a, detail::all_planes{}); }

  template <class Planes>
  static void forward(const kernel_args& a, Planes&& run) {
    const detail::pool_shape s(a.in[0].dims, a.out.dims, a.op->attr);
    const T* x = a.in[0].template as<const T>();
    T* y = a.out.template as<T>();
    run(s.planes, [&](i64 begin, i64 end) {
      for (i64 p = begin; p < end; ++p)
        for (i64 at = 0; at < s.positions(); ++at) {
          T sum = 0;
          const i64 r = at / s.out_width, c = at % s.out_width;
          s.each_tap(r, c, [&](i64 pixel, i64) { sum += x[p * s.pixels() + pixel]; });
          y[p * s.positions() + at] = sum / taps(s, r, c);
        }
    });
  }
  template <class Planes>
  static void backward_input(const kernel_args& a, Planes&& run) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const detail::pool_shape s(a.d_in[0].dims, a.d_out.dims, a.op->attr);
    const T* d = a.d_out.template as<const T>();
    run(s.planes, [&](i64 begin, i64 end) {
      for (i64 i = begin * s.pixels(); i < end * s.pixels(); ++i) dx[i] = 0;
      for (i64 p = begin; p < end; ++p)
        for (i64 at = 0; at < s.positions(); ++at) {
          const i64 r = at / s.out_width, c = at % s.out_width;
          const T share = d[p * s.positions() + at] / taps(s, r, c);
          s.each_tap(r, c, [&](i64 pixel, i64) { dx[p * s.pixels() + pixel] += share; });
        }
    });
  }

 private:
  // Padding counts, what a last window has beyond it does not.
  static T taps(const detail::pool_shape& s, i64 r, i64 c) {
    const i64 rows = s.height + s.padding - (r * s.stride - s.padding), columns = s.width + s.padding - (c * s.stride - s.padding);
    return T((rows < s.kernel ? rows : s.kernel) * (columns < s.kernel ? columns : s.kernel));
  }
};

template <class T>
struct plain_kernel<global_average_pool_op, T> {
  static void forward(device_context&, const kernel_args& a) {
    const i64 planes = a.out.count(), pixels = a.in[0].count() / planes;
    const T* x = a.in[0].template as<const T>();
    T* y = a.out.template as<T>();
    for (i64 p = 0; p < planes; ++p) {
      double sum = 0;
      for (i64 i = 0; i < pixels; ++i) sum += double(x[p * pixels + i]);
      y[p] = T(sum / double(pixels));
    }
  }
  static void backward_input(device_context&, const kernel_args& a) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const i64 planes = a.d_out.count(), pixels = a.d_in[0].count() / planes;
    const T* d = a.d_out.template as<const T>();
    for (i64 i = 0; i < a.d_in[0].count(); ++i) dx[i] = d[i / pixels] / T(pixels);
  }
};

}  // namespace fusionllm::inline v0
