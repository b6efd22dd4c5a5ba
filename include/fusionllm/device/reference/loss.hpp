// SPDX-License-Identifier: Apache-2.0
// Losses in plain loops. A row whose target does not count adds exactly 0 to loss and cotangents, also in a micro-batch
// in which no row counts. Targets are in range: who loads data has checked them.
#pragma once

#include <cmath>

#include "../../ops/loss.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {
template <class T>
double mean_in_double(const T* x, i64 n) {
  double sum = 0;
  for (i64 i = 0; i < n; ++i) sum += double(x[i]);
  return sum / double(n);
}
}  // namespace detail

template <class T>
struct plain_kernel<cross_entropy_op, T> {
  /// logits (rows, classes), targets (rows) -> the sum over rows of log-sum-exp(logits) - logits[target], scaled; with
  /// smoothing the mean of a row's logits takes that part of logits[target]'s place
  static void forward(device_context&, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), classes = a.in[0].dims.last();
    const T* x = a.in[0].template as<const T>();
    const auto* target = a.in[1].as<const std::int32_t>();
    T* saved = static_cast<T*>(a.saved);
    const double smoothing = a.op->attr.x;
    double sum = 0;
    bool any = false;
    for (i64 r = 0; r < rows; ++r, x += classes) {
      const two_parts lse = log_sum_exp(x, classes);
      if (saved) {
        saved[r] = lse.value;
        saved[rows + r] = lse.rest;
      }
      if (target[r] == a.op->attr.n[0]) continue;
      sum += double(lse.value) + double(lse.rest) - (1 - smoothing) * double(x[target[r]]);
      if (smoothing != 0) sum -= smoothing * detail::mean_in_double(x, classes);
      any = true;
    }
    *a.out.template as<T>() = any ? T(sum * a.loss_scale) : T(0);
  }

  /// d logits = scale * (softmax - the target's distribution); each element is read before it is written, so that d may
  /// lie over logits
  static void backward_input(device_context&, const kernel_args& a) {
    T* d = a.d_in[0].template as<T>();
    if (!d) return;
    const i64 rows = a.in[0].dims.rows(), classes = a.in[0].dims.last();
    const T* x = a.in[0].template as<const T>();
    const auto* target = a.in[1].as<const std::int32_t>();
    const T* saved = static_cast<const T*>(a.saved);
    const T scale = T(a.loss_scale), spread = T(a.op->attr.x / double(classes)), whole = T(1 - a.op->attr.x);
    for (i64 r = 0; r < rows; ++r, x += classes, d += classes) {
      const bool counts = target[r] != a.op->attr.n[0];
      for (i64 i = 0; i < classes; ++i)
        d[i] = counts ? scale * (std::exp(x[i] - saved[r] - saved[rows + r]) - (i == target[r] ? whole : T(0)) - spread)
                      : T(0);
    }
  }

 private:
  struct two_parts {
    T value, rest;
  };
  static two_parts log_sum_exp(const T* x, i64 n) {
    T largest = x[0], sum = 0;
    for (i64 i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    for (i64 i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
    const T log = std::log(sum), value = largest + log;
    return {value, (largest - value) + log};
  }
};

template <class T>
struct plain_kernel<mean_squared_error_op, T> {
  /// x, y of one shape -> the sum of (x - y)^2, scaled
  static void forward(device_context&, const kernel_args& a) {
    const T* x = a.in[0].template as<const T>();
    const T* y = a.in[1].template as<const T>();
    double sum = 0;
    for (i64 i = 0; i < a.in[0].count(); ++i) sum += (double(x[i]) - double(y[i])) * (double(x[i]) - double(y[i]));
    *a.out.template as<T>() = T(sum * a.loss_scale);
  }

  static void backward_input(device_context&, const kernel_args& a) {
    const T* x = a.in[0].template as<const T>();
    const T* y = a.in[1].template as<const T>();
    T* dx = a.d_in[0].template as<T>();
    T* dy = a.d_in[1].template as<T>();
    const T scale = T(2 * a.loss_scale);
    for (i64 i = 0; i < a.in[0].count(); ++i) {
      const T d = scale * (x[i] - y[i]);
      if (dx) dx[i] = d;
      if (dy) dy[i] = -d;
    }
  }
};

}  // namespace fusionllm::inline v0
