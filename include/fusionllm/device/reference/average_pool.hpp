// SPDX-License-Identifier: Apache-2.0
// Means over windows and over planes in plain loops; devices may share planes among threads.
#pragma once

#include "pool_shape.hpp"

namespace fusionllm::inline v0 {

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
    const i64 rows = s.height + s.padding - (r * s.stride - s.padding),
              columns = s.width + s.padding - (c * s.stride - s.padding);
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
