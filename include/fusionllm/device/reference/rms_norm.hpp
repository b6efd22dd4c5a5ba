// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization in plain loops.
#pragma once

#include <cmath>

#include "../../ops/rms_norm.hpp"
#include "../row_args.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<rms_norm_op, T> {
  /// x (rows, features), weight (features) -> x * q * weight with q = 1 / sqrt(mean(x^2) + epsilon)
  static void forward(device_context&, const kernel_args& a) {
    const row_args<T> v(a);
    const i64 n = v.n;
    for (i64 r = 0; r < v.rows; ++r) {
      const T* x = v.x + r * n;
      T* y = v.y + r * n;
      T squares = 0;
      for (i64 i = 0; i < n; ++i) squares += x[i] * x[i];
      const T q = T(1) / std::sqrt(squares / T(n) + T(a.op->attr.x));
      for (i64 i = 0; i < n; ++i) y[i] = x[i] * q * v.weight[i];
      if (v.saved) v.saved[r] = q;
    }
  }

  /// With g = dy * weight and h = x * q: dx = q * (g - h * mean(g * h)).
  static void backward_input(device_context&, const kernel_args& a) {
    const row_args<T> v(a);
    if (!v.dx) return;
    const i64 n = v.n;
    for (i64 r = 0; r < v.rows; ++r) {
      const T *x = v.x + r * n, *dy = v.dy + r * n, *weight = v.weight;
      T* dx = v.dx + r * n;
      const T q = v.saved[r];
      T sum = 0;
      for (i64 i = 0; i < n; ++i) sum += dy[i] * weight[i] * (x[i] * q);
      sum /= T(n);
      for (i64 i = 0; i < n; ++i) dx[i] = q * (dy[i] * weight[i] - x[i] * q * sum);
    }
  }

  static void backward_weight(device_context&, const kernel_args& a) {
    T* d_weight = a.d_param[0].template as<T>();
    if (!d_weight) return;
    const row_args<T> v(a);
    for (i64 r = 0; r < v.rows; ++r)
      for (i64 i = 0; i < v.n; ++i) d_weight[i] += v.dy[r * v.n + i] * (v.x[r * v.n + i] * v.saved[r]);
  }
};

}  // namespace fusionllm::inline v0
