// SPDX-License-Identifier: Apache-2.0
// transpose, slice and concatenate: every element of what is written is read from one place.
#pragma once

#include <fusionllm/ops/concatenate.hpp>
#include <fusionllm/ops/slice.hpp>
#include <fusionllm/ops/transpose.hpp>

#include <fusionllm/device/rearrangement.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// y is x, seen as (outer, first, middle, second, inner), with first and second exchanged.
template <class T>
struct exchange_body {
  const T* x;
  T* y;
  i64 count, first, middle, second, inner;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, count, [&](i64 to) {
      const i64 i = to % inner, f = to / inner % first, row = to / inner / first;
      const i64 m = row % middle, s = row / middle % second, o = row / middle / second;
      y[to] = x[(((o * first + f) * middle + m) * second + s) * inner + i];
    });
  }
};

/// Rows of `length` elements, which begin x_step and y_step elements apart.
template <class T>
struct copy_rows_body {
  const T* x;
  T* y;
  i64 rows, length, x_step, y_step;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, rows * length, [&](i64 k) {
      const i64 r = k / length, i = k % length;
      y[r * y_step + i] = x[r * x_step + i];
    });
  }
};

/// Rows of dx: those of d from `first` on, zero around them.
template <class T>
struct unslice_body {
  const T* d;
  T* dx;
  i64 rows, row, first, length;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, rows * row, [&](i64 k) {
      const i64 r = k / row, i = k % row - first;
      dx[k] = i >= 0 && i < length ? d[r * length + i] : T(0.0f);
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<transpose_op, T, Launch> {
  static void forward(typename Launch::context& c, const kernel_args& a) { exchange(c, *a.op, a.in[0], a.out); }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (a.d_in[0]) exchange(c, *a.op, a.d_out, a.d_in[0]);
  }

 private:
  static void exchange(typename Launch::context& c, const node& op, const tensor_ref& x, const tensor_ref& y) {
    const axis_exchange e(x.dims, op.attr.n[0], op.attr.n[1]);
    Launch::items(c, y.count(),
                  detail::exchange_body<T>{x.template as<const T>(), y.template as<T>(), y.count(), e.first, e.middle,
                                           e.second, e.inner},
                  "launch a transpose");
  }
};

template <class T, class Launch>
struct team_kernel<slice_op, T, Launch> {
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const around_axis whole(a.in[0].dims, a.op->attr.n[0]);
    const i64 first = a.op->attr.n[1] * whole.inner, length = (a.op->attr.n[2] - a.op->attr.n[1]) * whole.inner;
    Launch::items(c, whole.outer * length,
                  detail::copy_rows_body<T>{a.in[0].template as<const T>() + first, a.out.template as<T>(), whole.outer,
                                            length, whole.extent * whole.inner, length},
                  "launch a slice");
  }
  /// Zero outside the range.
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const around_axis whole(a.d_in[0].dims, a.op->attr.n[0]);
    const i64 first = a.op->attr.n[1] * whole.inner, length = (a.op->attr.n[2] - a.op->attr.n[1]) * whole.inner;
    Launch::items(c, a.d_in[0].count(),
                  detail::unslice_body<T>{a.d_out.template as<const T>(), a.d_in[0].template as<T>(), whole.outer,
                                          whole.extent * whole.inner, first, length},
                  "launch the cotangent of a slice");
  }
};

template <class T, class Launch>
struct team_kernel<concatenate_op, T, Launch> {
  static void forward(typename Launch::context& c, const kernel_args& a) {
    each_part(a, a.out, [&](std::size_t k, const around_axis& w, i64 at, i64 length) {
      copy(c, a.in[k].template as<const T>(), a.out.template as<T>() + at, w.outer, length, length,
           w.extent * w.inner);
    });
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    each_part(a, a.d_out, [&](std::size_t k, const around_axis& w, i64 at, i64 length) {
      if (!a.d_in[k]) return;
      copy(c, a.d_out.template as<const T>() + at, a.d_in[k].template as<T>(), w.outer, length, w.extent * w.inner,
           length);
    });
  }

 private:
  /// f(input, the whole's extents, where the input's elements begin in a row of the whole, how many there are)
  template <class F>
  static void each_part(const kernel_args& a, const tensor_ref& whole, F&& f) {
    const around_axis w(whole.dims, a.op->attr.n[0]);
    const int count = a.op->input_count();
    i64 at = 0;
    for (int k = 0; k < count; ++k) {
      const i64 extent = k + 1 < count ? concatenate_op::extent(a.op->attr, k) : w.extent - at;
      f(std::size_t(k), w, at * w.inner, extent * w.inner);
      at += extent;
    }
  }
  static void copy(typename Launch::context& c, const T* x, T* y, i64 rows, i64 length, i64 x_step, i64 y_step) {
    Launch::items(c, rows * length, detail::copy_rows_body<T>{x, y, rows, length, x_step, y_step},
                  "launch a part of a concatenation");
  }
};

}  // namespace fusionllm::inline v0
