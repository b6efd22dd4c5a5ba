// SPDX-License-Identifier: Apache-2.0
// Softmax over the last dimension, and means, in plain loops.
#pragma once

#include <cmath>

#include "../../ops/mean.hpp"
#include "../../ops/softmax.hpp"
#include "../row_args.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<softmax_op, T> {
  /// x (rows, n) -> exp(x - largest) / sum; y may lie over x
  static void forward(device_context&, const kernel_args& a) {
    const row_args<T> v(a);
    const i64 n = v.n;
    for (i64 r = 0; r < v.rows; ++r) {
      const T* x = v.x + r * n;
      T* y = v.y + r * n;
      T largest = x[0], sum = 0;
      for (i64 i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
      for (i64 i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - largest);
      for (i64 i = 0; i < n; ++i) y[i] /= sum;
    }
  }

  /// dx = y * (dy - the sum of y * dy)
  static void backward_input(device_context&, const kernel_args& a) {
    const row_args<T> v(a);
    if (!v.dx) return;
    const i64 n = v.n;
    for (i64 r = 0; r < v.rows; ++r) {
      const T *y = v.y + r * n, *dy = v.dy + r * n;
      T* dx = v.dx + r * n;
      T sum = 0;
      for (i64 i = 0; i < n; ++i) sum += y[i] * dy[i];
      for (i64 i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - sum);
    }
  }
};

template <class T>
struct plain_kernel<mean_op, T> {
  /// x (rows, n) -> the mean of each row, summed in double
  static void forward(device_context&, const kernel_args& a) {
    const i64 rows = a.out.count(), n = a.in[0].count() / rows;
    const T* x = a.in[0].template as<const T>();
    T* y = a.out.template as<T>();
    for (i64 r = 0; r < rows; ++r) {
      double sum = 0;
      for (i64 i = 0; i < n; ++i) sum += double(x[r * n + i]);
      y[r] = T(sum / double(n));
    }
  }

  static void backward_input(device_context&, const kernel_args& a) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const i64 rows = a.d_out.count(), n = a.d_in[0].count() / rows;
    const T* dy = a.d_out.template as<const T>();
    for (i64 r = 0; r < rows; ++r)
      for (i64 i = 0; i < n; ++i) dx[r * n + i] = dy[r] / T(n);
  }
};

}  // namespace fusionllm::inline v0
