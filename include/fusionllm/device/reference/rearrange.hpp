// SPDX-License-Identifier: Apache-2.0
// reshape, transpose, slice and concatenate. On a context with a team they are split over it.
#pragma once

#include "../../ops/concatenate.hpp"
#include "../../ops/reshape.hpp"
#include "../../ops/slice.hpp"
#include "../../ops/transpose.hpp"
#include "../chain.hpp"
#include "../rearrangement.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<reshape_op, T> {
  template <class Context>
  static void forward(Context& c, const kernel_args& a) {
    copy(c, a.in[0], a.out);
  }
  template <class Context>
  static void backward_input(Context& c, const kernel_args& a) {
    if (a.d_in[0]) copy(c, a.d_out, a.d_in[0]);
  }

 private:
  template <class Context>
  static void copy(Context& c, const tensor_ref& x, const tensor_ref& y) {
    if (x.data == y.data) return;
    detail::split_elements(c, x.count(), 1024, [&](i64 from, i64 to) {
      copy_rows(x.template as<const T>() + from, 0, y.template as<T>() + from, 0, to - from, 0, 1);
    });
  }
};

template <class T>
struct plain_kernel<transpose_op, T> {
  template <class Context>
  static void forward(Context& c, const kernel_args& a) {
    exchange(c, *a.op, a.in[0], a.out);
  }
  template <class Context>
  static void backward_input(Context& c, const kernel_args& a) {
    if (a.d_in[0]) exchange(c, *a.op, a.d_out, a.d_in[0]);
  }

 private:
  template <class Context>
  static void exchange(Context& c, const node& op, const tensor_ref& x, const tensor_ref& y) {
    const axis_exchange e(x.dims, op.attr.n[0], op.attr.n[1]);
    detail::split_elements(c, e.rows(), 16, [&](i64 from, i64 to) {
      e.copy(x.template as<const T>(), y.template as<T>(), from, to);
    });
  }
};

template <class T>
struct plain_kernel<slice_op, T> {
  template <class Context>
  static void forward(Context& c, const kernel_args& a) {
    const around_axis whole(a.in[0].dims, a.op->attr.n[0]);
    const i64 first = a.op->attr.n[1] * whole.inner, length = (a.op->attr.n[2] - a.op->attr.n[1]) * whole.inner;
    detail::split_elements(c, whole.outer, 16, [&](i64 from, i64 to) {
      copy_rows(a.in[0].template as<const T>() + first, whole.extent * whole.inner, a.out.template as<T>(), length,
                length, from, to);
    });
  }
  /// Zero outside the range.
  template <class Context>
  static void backward_input(Context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const around_axis whole(a.d_in[0].dims, a.op->attr.n[0]);
    const i64 first = a.op->attr.n[1] * whole.inner, end = a.op->attr.n[2] * whole.inner;
    const i64 row = whole.extent * whole.inner;
    const T* d = a.d_out.template as<const T>();
    detail::split_elements(c, whole.outer, 16, [&](i64 from, i64 to) {
      for (i64 r = from; r < to; ++r) {
        T* dx = a.d_in[0].template as<T>() + r * row;
        for (i64 i = 0; i < first; ++i) dx[i] = 0;
        for (i64 i = end; i < row; ++i) dx[i] = 0;
        std::memcpy(dx + first, d + r * (end - first), std::size_t(end - first) * sizeof(T));
      }
    });
  }
};

template <class T>
struct plain_kernel<concatenate_op, T> {
  template <class Context>
  static void forward(Context& c, const kernel_args& a) {
    each_part(c, a, a.out, a.in, [](T* whole, i64 row, T* part, i64 length, i64 from, i64 to) {
      copy_rows<T>(part, length, whole, row, length, from, to);
    });
  }
  template <class Context>
  static void backward_input(Context& c, const kernel_args& a) {
    each_part(c, a, a.d_out, a.d_in, [](T* whole, i64 row, T* part, i64 length, i64 from, i64 to) {
      if (part) copy_rows<T>(whole, row, part, length, length, from, to);
    });
  }

 private:
  template <class Context, class F>
  static void each_part(Context& c, const kernel_args& a, const tensor_ref& whole,
                        const std::array<tensor_ref, max_inputs>& parts, F&& f) {
    const around_axis w(whole.dims, a.op->attr.n[0]);
    const int count = a.op->input_count();
    detail::split_elements(c, w.outer, 16, [&](i64 from, i64 to) {
      i64 at = 0;
      for (int k = 0; k < count; ++k) {
        const i64 extent = k + 1 < count ? concatenate_op::extent(a.op->attr, k) : w.extent - at;
        f(whole.template as<T>() + at * w.inner, w.extent * w.inner, parts[std::size_t(k)].template as<T>(),
          extent * w.inner, from, to);
        at += extent;
      }
    });
  }
};

}  // namespace fusionllm::inline v0
