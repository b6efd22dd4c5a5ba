// SPDX-License-Identifier: Apache-2.0
// Layer normalization in plain loops; statistics in two passes.
#pragma once

#include <cmath>

#include "../../ops/layer_norm.hpp"
#include "../row_args.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<layer_norm_op, T> {
  /// x (rows, features), weight and bias (features) -> (x - mean) / sqrt(variance + epsilon) * weight + bias
  static void forward(device_context&, const kernel_args& a) {
    const row_args<T> v(a);
    const i64 n = v.n;
    for (i64 r = 0; r < v.rows; ++r) {
      const T* x = v.x + r * n;
      T* y = v.y + r * n;
      T mean = 0, variance = 0;
      for (i64 i = 0; i < n; ++i) mean += x[i];
      mean /= T(n);
      for (i64 i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean);
      const T reciprocal = T(1) / std::sqrt(variance / T(n) + T(a.op->attr.x));
      for (i64 i = 0; i < n; ++i) y[i] = (x[i] - mean) * reciprocal * v.weight[i] + v.bias[i];
      if (!v.saved) continue;
      v.saved[r] = mean;
      v.saved[v.rows + r] = reciprocal;
    }
  }

  /// With g = dy * weight and h = (x - mean) * reciprocal: dx = reciprocal * (g - mean(g) - h * mean(g * h)).
  static void backward_input(device_context&, const kernel_args& a) {
    const row_args<T> v(a);
    if (!v.dx) return;
    const i64 n = v.n;
    for (i64 r = 0; r < v.rows; ++r) {
      const T *x = v.x + r * n, *dy = v.dy + r * n;
      T* dx = v.dx + r * n;
      const T mean = v.saved[r], reciprocal = v.saved[v.rows + r];
      T g_mean = 0, gh_mean = 0;
      for (i64 i = 0; i < n; ++i) {
        const T g = dy[i] * v.weight[i];
        g_mean += g;
        gh_mean += g * ((x[i] - mean) * reciprocal);
      }
      g_mean /= T(n);
      gh_mean /= T(n);
      for (i64 i = 0; i < n; ++i)
        dx[i] = reciprocal * (dy[i] * v.weight[i] - g_mean - (x[i] - mean) * reciprocal * gh_mean);
    }
  }

  static void backward_weight(device_context&, const kernel_args& a) {
    const row_args<T> v(a);
    T* d_weight = a.d_param[0].template as<T>();
    T* d_bias = a.d_param[1].template as<T>();
    for (i64 r = 0; r < v.rows; ++r) {
      const T *x = v.x + r * v.n, *dy = v.dy + r * v.n;
      for (i64 i = 0; i < v.n; ++i) {
        if (d_weight) d_weight[i] += dy[i] * ((x[i] - v.saved[r]) * v.saved[v.rows + r]);
        if (d_bias) d_bias[i] += dy[i];
      }
    }
  }
};

}  // namespace fusionllm::inline v0
