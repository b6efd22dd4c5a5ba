// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization in plain loops.
#pragma once

#include <cmath>

#include "../../ops/rms_norm.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<rms_norm_op, T> {
  /// x (rows, features), weight (features) -> x * q * weight with q = 1 / sqrt(mean(x^2) + epsilon)
  static void forward(device_context&, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), n = a.out.dims.last();
    const T* x = a.in[0].template as<const T>();
    const T* weight = a.param[0].template as<const T>();
    T* y = a.out.template as<T>();
    T* saved = static_cast<T*>(a.saved);
    for (i64 r = 0; r < rows; ++r, x += n, y += n) {
      T squares = 0;
      for (i64 i = 0; i < n; ++i) squares += x[i] * x[i];
      const T q = T(1) / std::sqrt(squares / T(n) + T(a.op->attr.x));
      for (i64 i = 0; i < n; ++i) y[i] = x[i] * q * weight[i];
      if (saved) saved[r] = q;
    }
  }

  /// With g = dy * weight and h = x * q: dx = q * (g - h * mean(g * h)).
  static void backward_input(device_context&, const kernel_args& a) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const T* x = a.in[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    const T* weight = a.param[0].template as<const T>();
    for (i64 r = 0; r < rows; ++r, x += n, dy += n, dx += n) {
      const T q = static_cast<const T*>(a.saved)[r];
      T sum = 0;
      for (i64 i = 0; i < n; ++i) sum += dy[i] * weight[i] * (x[i] * q);
      sum /= T(n);
      for (i64 i = 0; i < n; ++i) dx[i] = q * (dy[i] * weight[i] - x[i] * q * sum);
    }
  }

  static void backward_weight(device_context&, const kernel_args& a) {
    T* d_weight = a.d_param[0].template as<T>();
    if (!d_weight) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const T* x = a.in[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    for (i64 r = 0; r < rows; ++r, x += n, dy += n)
      for (i64 i = 0; i < n; ++i) d_weight[i] += dy[i] * (x[i] * static_cast<const T*>(a.saved)[r]);
  }
};

}  // namespace fusionllm::inline v0
