// SPDX-License-Identifier: Apache-2.0
// Means over windows, with the bits of plain loops. The mean of a whole image is mean.hpp's.
#pragma once

#include "pooling_windows.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct average_pool_forward {
  pool_windows s;
  const T* x;
  T* y;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, s.outputs(), [&](i64 at) {
      float sum = 0;
      s.each_pixel(at, [&](i64 pixel, i64) { sum += float(x[pixel]); });
      y[at] = T(sum / s.taps(at));
    });
  }
};

template <class T>
struct average_pool_cotangent {
  pool_windows s;
  const T* dy;
  T* dx;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, s.pixels(), [&](i64 pixel) {
      float sum = 0;
      s.each_window(pixel, [&](i64 at, i64) { sum += float(dy[at]) / s.taps(at); });
      dx[pixel] = T(sum);
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<average_pool_op, T, Launch> {
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const detail::pool_windows s(detail::pool_shape(a.in[0].dims, a.out.dims, a.op->attr));
    Launch::items(c, s.outputs(),
                  detail::average_pool_forward<T>{s, a.in[0].template as<const T>(), a.out.template as<T>()},
                  "launch an average pool");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const detail::pool_windows s(detail::pool_shape(a.d_in[0].dims, a.d_out.dims, a.op->attr));
    Launch::items(c, s.pixels(),
                  detail::average_pool_cotangent<T>{s, a.d_out.template as<const T>(), a.d_in[0].template as<T>()},
                  "launch the cotangent of an average pool");
  }
};

}  // namespace fusionllm::inline v0
