// SPDX-License-Identifier: Apache-2.0
// Maxima over windows, with the bits of plain loops: of equal values the first wins, a NaN does.
#pragma once

#include "pooling_windows.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T, class Index>
struct max_pool_forward {
  pool_windows s;
  const T* x;
  T* y;
  Index* index;  ///< null: not wanted; else the tap that each output came from

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, s.outputs(), [&](i64 at) {
      float largest = 0;
      i64 from = -1;
      s.each_pixel(at, [&](i64 pixel, i64 tap) {
        const float v = float(x[pixel]);
        if (from >= 0 && !(v > largest) && v == v) return;
        largest = v;
        from = tap;
      });
      y[at] = T(largest);
      if (index) index[at] = Index(from);
    });
  }
};

template <class T, class Index>
struct max_pool_cotangent {
  pool_windows s;
  const T* dy;
  const Index* index;
  T* dx;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, s.pixels(), [&](i64 pixel) {
      float sum = 0;
      s.each_window(pixel, [&](i64 at, i64 tap) {
        if (i64(index[at]) == tap) sum += float(dy[at]);
      });
      dx[pixel] = T(sum);
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<max_pool_op, T, Launch> {
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const detail::pool_windows s(detail::pool_shape(a.in[0].dims, a.out.dims, a.op->attr));
    with_index(a, [&](auto* index) {
      using index_type = std::remove_reference_t<decltype(*index)>;
      Launch::items(c, s.outputs(),
                    detail::max_pool_forward<T, index_type>{s, a.in[0].template as<const T>(), a.out.template as<T>(),
                                                            index},
                    "launch a maximum pool");
    });
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const detail::pool_windows s(detail::pool_shape(a.d_in[0].dims, a.d_out.dims, a.op->attr));
    with_index(a, [&](auto* index) {
      using index_type = std::remove_reference_t<decltype(*index)>;
      Launch::items(c, s.pixels(),
                    detail::max_pool_cotangent<T, index_type>{s, a.d_out.template as<const T>(), index,
                                                              a.d_in[0].template as<T>()},
                    "launch the cotangent of a maximum pool");
    });
  }

 private:
  template <class F>
  static void with_index(const kernel_args& a, F&& f) {
    if (max_pool_op::index_bytes(a.op->attr) == 1) f(static_cast<u8*>(a.saved));
    else f(static_cast<u16*>(a.saved));
  }
};

}  // namespace fusionllm::inline v0
