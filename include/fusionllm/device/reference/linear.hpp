// SPDX-License-Identifier: Apache-2.0
// y = x W^T + b, and the projection onto a tied table, in plain loops.
#pragma once

#include "../../ops/linear.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<linear_op, T> {
  /// x (rows, in), W (out, in), b (out) or absent -> y (rows, out)
  static void forward(device_context&, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), in = a.in[0].dims.last(), out = a.out.dims.last();
    const T* x = a.in[0].template as<const T>();
    const T* w = a.param[0].template as<const T>();
    const T* b = a.param[1].template as<const T>();
    T* y = a.out.template as<T>();
    for (i64 r = 0; r < rows; ++r)
      for (i64 o = 0; o < out; ++o) {
        T sum = 0;
        for (i64 i = 0; i < in; ++i) sum += x[r * in + i] * w[o * in + i];
        y[r * out + o] = b ? sum + b[o] : sum;
      }
  }

  /// dx = dy W
  static void backward_input(device_context&, const kernel_args& a) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const i64 rows = a.d_in[0].dims.rows(), in = a.d_in[0].dims.last(), out = a.d_out.dims.last();
    const T* w = a.param[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    for (i64 r = 0; r < rows; ++r) {
      for (i64 i = 0; i < in; ++i) dx[r * in + i] = 0;
      for (i64 o = 0; o < out; ++o)
        for (i64 i = 0; i < in; ++i) dx[r * in + i] += dy[r * out + o] * w[o * in + i];
    }
  }

  /// dW += dy^T x, db += sum of dy over rows
  static void backward_weight(device_context&, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), in = a.in[0].dims.last(), out = a.d_out.dims.last();
    const T* x = a.in[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    T* dw = a.d_param[0].template as<T>();
    T* db = a.d_param[1].template as<T>();
    for (i64 r = 0; r < rows; ++r)
      for (i64 o = 0; o < out; ++o) {
        const T d = dy[r * out + o];
        if (db) db[o] += d;
        if (!dw) continue;
        for (i64 i = 0; i < in; ++i) dw[o * in + i] += d * x[r * in + i];
      }
  }
};

}  // namespace fusionllm::inline v0
