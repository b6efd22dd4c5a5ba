// SPDX-License-Identifier: Apache-2.0
// The same numbers in another place: what reshape and flatten are where their memory differs.
#pragma once

#include <fusionllm/ops/flatten.hpp>
#include <fusionllm/ops/reshape.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct copy_body {
  const T* x;
  T* y;
  i64 count;
  bool aligned;  ///< both are `quad_aligned`

  FL_HD i64 quads() const { return (count + 3) / 4; }
  template <class Team>
  FL_HD void operator()(const Team& team) const {
    const i64 whole = aligned ? count / 4 : 0;
    each_item(team, quads(), [&](i64 q) {
      if (q < whole) store_quad<true>(load_quad<true>(x, 4 * q, count), y, 4 * q, count);
      else store_quad<false>(load_quad<false>(x, 4 * q, count), y, 4 * q, count);
    });
  }
};

}  // namespace detail

/// y = x, unless they are one memory.
template <class T, class Launch>
void copy_elements(typename Launch::context& c, const tensor_ref& x, const tensor_ref& y) {
  if (x.data == y.data) return;
  const detail::copy_body<T> body{x.template as<const T>(), y.template as<T>(), y.count(),
                                  quad_aligned(x.template as<const T>()) && quad_aligned(y.template as<const T>())};
  Launch::items(c, body.quads(), body, "launch a copy");
}

namespace detail {
template <class T, class Launch>
struct copying_kernel {
  static void forward(typename Launch::context& c, const kernel_args& a) {
    copy_elements<T, Launch>(c, a.in[0], a.out);
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (a.d_in[0]) copy_elements<T, Launch>(c, a.d_out, a.d_in[0]);
  }
};
}  // namespace detail

template <class T, class Launch>
struct team_kernel<reshape_op, T, Launch> : detail::copying_kernel<T, Launch> {};
template <class T, class Launch>
struct team_kernel<flatten_op, T, Launch> : detail::copying_kernel<T, Launch> {};

}  // namespace fusionllm::inline v0
