// SPDX-License-Identifier: Apache-2.0
// Maxima over windows in plain loops, a plane after the other; devices may share planes among threads.
#pragma once

#include "pool_shape.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<max_pool_op, T> {
  static void forward(device_context&, const kernel_args& a) { forward(a, detail::all_planes{}); }
  static void backward_input(device_context&, const kernel_args& a) { backward_input(a, detail::all_planes{}); }

  template <class Planes>
  static void forward(const kernel_args& a, Planes&& run) {
    const detail::pool_shape s(a.in[0].dims, a.out.dims, a.op->attr);
    if (max_pool_op::index_bytes(a.op->attr) == 1)
      forward_with<u8>(a, s, run);
    else
      forward_with<u16>(a, s, run);
  }
  template <class Planes>
  static void backward_input(const kernel_args& a, Planes&& run) {
    if (!a.d_in[0]) return;
    const detail::pool_shape s(a.d_in[0].dims, a.d_out.dims, a.op->attr);
    if (max_pool_op::index_bytes(a.op->attr) == 1)
      backward_with<u8>(a, s, run);
    else
      backward_with<u16>(a, s, run);
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

}  // namespace fusionllm::inline v0
