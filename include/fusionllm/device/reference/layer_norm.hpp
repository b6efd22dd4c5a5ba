// SPDX-License-Identifier: Apache-2.0
// Layer normalization in plain loops; statistics in two passes.
#pragma once

#include <cmath>

#include "../../ops/layer_norm.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<layer_norm_op, T> {
  /// x (rows, features), weight and bias (features) -> (x - mean) / sqrt(variance + epsilon) * weight + bias
  static void forward(device_context&, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), n = a.out.dims.last();
    const T* x = a.in[0].template as<const T>();
    const T* weight = a.param[0].template as<const T>();
    const T* bias = a.param[1].template as<const T>();
    T* y = a.out.template as<T>();
    T* saved = static_cast<T*>(a.saved);
    for (i64 r = 0; r < rows; ++r, x += n, y += n) {
      T mean = 0, variance = 0;
      for (i64 i = 0; i < n; ++i) mean += x[i];
      mean /= T(n);
      for (i64 i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean);
      const T reciprocal = T(1) / std::sqrt(variance / T(n) + T(a.op->attr.x));
      for (i64 i = 0; i < n; ++i) y[i] = (x[i] - mean) * reciprocal * weight[i] + bias[i];
      if (!saved) continue;
      saved[r] = mean;
      saved[rows + r] = reciprocal;
    }
  }

  /// With g = dy * weight and h = (x - mean) * reciprocal: dx = reciprocal * (g - mean(g) - h * mean(g * h)).
  static void backward_input(device_context&, const kernel_args& a) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const T* x = a.in[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    const T* weight = a.param[0].template as<const T>();
    const T* saved = static_cast<const T*>(a.saved);
    for (i64 r = 0; r < rows; ++r, x += n, dy += n, dx += n) {
      const T mean = saved[r], reciprocal = saved[rows + r];
      T g_mean = 0, gh_mean = 0;
      for (i64 i = 0; i < n; ++i) {
        const T g = dy[i] * weight[i];
        g_mean += g;
        gh_mean += g * ((x[i] - mean) * reciprocal);
      }
      g_mean /= T(n);
      gh_mean /= T(n);
      for (i64 i = 0; i < n; ++i)
        dx[i] = reciprocal * (dy[i] * weight[i] - g_mean - (x[i] - mean) * reciprocal * gh_mean);
    }
  }

  static void backward_weight(device_context&, const kernel_args& a) {
    const i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
    const T* x = a.in[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    const T* saved = static_cast<const T*>(a.saved);
    T* d_weight = a.d_param[0].template as<T>();
    T* d_bias = a.d_param[1].template as<T>();
    for (i64 r = 0; r < rows; ++r, x += n, dy += n)
      for (i64 i = 0; i < n; ++i) {
        if (d_weight) d_weight[i] += dy[i] * ((x[i] - saved[r]) * saved[rows + r]);
        if (d_bias) d_bias[i] += dy[i];
      }
  }
};

}  // namespace fusionllm::inline v0
