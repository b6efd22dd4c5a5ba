// SPDX-License-Identifier: Apache-2.0
// Rows by token, and learned positions, in plain loops. Tokens are in range: who loads data has checked them.
#pragma once

#include "../../ops/embedding.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<embedding_op, T> {
  /// tokens (batch, time), table (rows, features) -> (batch, time, features)
  static void forward(device_context&, const kernel_args& a) {
    const i64 features = a.out.dims.last();
    const auto* token = a.in[0].as<const std::int32_t>();
    const T* table = a.param[0].template as<const T>();
    T* out = a.out.template as<T>();
    for (i64 i = 0; i < a.in[0].count(); ++i)
      for (i64 f = 0; f < features; ++f) out[i * features + f] = table[token[i] * features + f];
  }

  static void backward_weight(device_context&, const kernel_args& a) {
    T* d_table = a.d_param[0].template as<T>();
    if (!d_table) return;
    const i64 features = a.d_out.dims.last();
    const auto* token = a.in[0].as<const std::int32_t>();
    const T* d = a.d_out.template as<const T>();
    for (i64 i = 0; i < a.in[0].count(); ++i)
      for (i64 f = 0; f < features; ++f) d_table[token[i] * features + f] += d[i * features + f];
  }
};

template <class T>
struct plain_kernel<positions_op, T> {
  /// x (batch, time, features), table (max time, features) -> x + table[time]
  static void forward(device_context&, const kernel_args& a) {
    const i64 row = a.out.dims.d[1] * a.out.dims.d[2];
    const T* x = a.in[0].template as<const T>();
    const T* table = a.param[0].template as<const T>() + a.past * a.out.dims.last();
    T* out = a.out.template as<T>();
    for (i64 b = 0; b < a.out.dims.d[0]; ++b)
      for (i64 i = 0; i < row; ++i) out[b * row + i] = x[b * row + i] + table[i];
  }

  static void backward_input(device_context&, const kernel_args& a) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const T* d = a.d_out.template as<const T>();
    for (i64 i = 0; i < a.d_out.count(); ++i) dx[i] = d[i];
  }

  static void backward_weight(device_context&, const kernel_args& a) {
    T* d_table = a.d_param[0].template as<T>();
    if (!d_table) return;
    const i64 row = a.d_out.dims.d[1] * a.d_out.dims.d[2];
    const T* d = a.d_out.template as<const T>();
    for (i64 b = 0; b < a.d_out.dims.d[0]; ++b)
      for (i64 i = 0; i < row; ++i) d_table[i] += d[b * row + i];
  }
};

}  // namespace fusionllm::inline v0
