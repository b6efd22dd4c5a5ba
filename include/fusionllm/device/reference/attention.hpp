// SPDX-License-Identifier: Apache-2.0
// Causal attention in plain loops, one query at a time. Forward keeps each row's log-sum-exp; backward recomputes the
// probabilities from it.
#pragma once

#include <cmath>
#include <type_traits>

#include "../../ops/attention.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Where one head of one sequence lies in (batch, time, 3 * features): rows of q, k, v are `stride` apart.
template <class T>
struct attention_head {
  using value = std::remove_const_t<T>;
  i64 width, stride;  ///< features of a head, 3 * features
  T *q, *k, *v;
  value scale;

  static attention_head at(T* qkv, const kernel_args& a, const extents& out, i64 b, i64 h) {
    const i64 features = out.d[2], width = features / a.op->attr.n[0];
    T* q = qkv + b * out.d[1] * 3 * features + h * width;
    return {width, 3 * features, q, q + features, q + 2 * features, value(1 / std::sqrt(double(width)))};
  }
  value dot(const T* x, const T* y) const {
    value sum = 0;
    for (i64 i = 0; i < width; ++i) sum += x[i] * y[i];
    return sum;
  }
  value score(i64 t, i64 s) const { return scale * dot(q + t * stride, k + s * stride); }
};

}  // namespace detail

template <class T>
struct plain_kernel<attention_op, T> {
  static void forward(device_context&, const kernel_args& a) {
    const i64 heads = a.op->attr.n[0], steps = a.out.dims.d[1], features = a.out.dims.d[2];
    const T* qkv = a.in[0].template as<const T>();
    T* out = a.out.template as<T>();
    T* saved = static_cast<T*>(a.saved);
    for (i64 b = 0; b < a.out.dims.d[0]; ++b)
      for (i64 h = 0; h < heads; ++h) {
        const auto head = detail::attention_head<const T>::at(qkv, a, a.out.dims, b, h);
        for (i64 t = 0; t < steps; ++t) {
          const T lse = row(head, t, out + (b * steps + t) * features + h * head.width);
          if (saved) saved[(b * heads + h) * steps + t] = lse;
        }
      }
  }

  static void backward_input(device_context&, const kernel_args& a) {
    T* d_qkv = a.d_in[0].template as<T>();
    if (!d_qkv) return;
    const extents& dims = a.d_out.dims;
    const i64 heads = a.op->attr.n[0], steps = dims.d[1], features = dims.d[2];
    for (i64 i = 0; i < a.d_in[0].count(); ++i) d_qkv[i] = 0;
    for (i64 b = 0; b < dims.d[0]; ++b)
      for (i64 h = 0; h < heads; ++h) {
        const auto x = detail::attention_head<const T>::at(a.in[0].template as<const T>(), a, dims, b, h);
        const auto d = detail::attention_head<T>::at(d_qkv, a, dims, b, h);
        for (i64 t = 0; t < steps; ++t) {
          const i64 at = (b * steps + t) * features + h * x.width;
          backward_row(x, d, t, a.out.template as<const T>() + at, a.d_out.template as<const T>() + at,
                       static_cast<const T*>(a.saved)[(b * heads + h) * steps + t]);
        }
      }
  }

 private:
  // Softmax with a running maximum: earlier sums are rescaled when a larger score comes.
  static T row(const detail::attention_head<const T>& head, i64 t, T* y) {
    T largest = head.score(t, 0), sum = 0;
    for (i64 i = 0; i < head.width; ++i) y[i] = 0;
    for (i64 s = 0; s <= t; ++s) {
      const T score = head.score(t, s);
      if (score > largest) {
        const T shrink = std::exp(largest - score);
        for (i64 i = 0; i < head.width; ++i) y[i] *= shrink;
        sum *= shrink;
        largest = score;
      }
      const T p = std::exp(score - largest);
      sum += p;
      for (i64 i = 0; i < head.width; ++i) y[i] += p * head.v[s * head.stride + i];
    }
    for (i64 i = 0; i < head.width; ++i) y[i] /= sum;
    return largest + std::log(sum);
  }

  static void backward_row(const detail::attention_head<const T>& x, const detail::attention_head<T>& d, i64 t,
                           const T* y, const T* dy, T lse) {
    const T mean = x.dot(y, dy);  // the mean of dp under p
    for (i64 s = 0; s <= t; ++s) {
      const T p = std::exp(x.score(t, s) - lse);
      const T ds = p * (x.dot(dy, x.v + s * x.stride) - mean) * x.scale;
      for (i64 i = 0; i < x.width; ++i) {
        d.q[t * d.stride + i] += ds * x.k[s * x.stride + i];
        d.k[s * d.stride + i] += ds * x.q[t * x.stride + i];
        d.v[s * d.stride + i] += p * dy[i];
      }
    }
  }
};

}  // namespace fusionllm::inline v0
