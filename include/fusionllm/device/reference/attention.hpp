// SPDX-License-Identifier: Apache-2.0
// Causal attention in plain loops, one query at a time. Forward keeps each row's log-sum-exp; backward recomputes the
// probabilities from it.
#pragma once

#include <cmath>
#include <type_traits>

#include "../attention_layout.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// One head of queries of one sequence, with the keys and values that it reads. Null: not wanted.
template <class T>
struct attention_head {
  using value = std::remove_const_t<T>;
  const attention_layout& s;
  T *q, *k, *v;

  static attention_head at(const std::array<tensor_ref, max_inputs>& x, const attention_layout& s, i64 b, i64 h) {
    return {s, s.q_of<T>(x, b, h), s.k_of<T>(x, b, h / s.group), s.v_of<T>(x, b, h / s.group)};
  }
  value dot(const T* x, const T* y) const {
    value sum = 0;
    for (i64 i = 0; i < s.width; ++i) sum += x[i] * y[i];
    return sum;
  }
  value score(i64 query, i64 key) const { return value(s.scale) * dot(q + query * s.q.stride, k + key * s.k.stride); }
};

}  // namespace detail

template <class T>
struct plain_kernel<attention_op, T> {
  static void forward(device_context&, const kernel_args& a) {
    const attention_layout s(a);
    if (a.state) s.template remember<T>(a);
    T* out = a.out.template as<T>();
    T* saved = static_cast<T*>(a.saved);
    for (i64 b = 0; b < s.sequences; ++b)
      for (i64 h = 0; h < s.heads; ++h) {
        const detail::attention_head<const T> head{s, s.template q_of<const T>(a.in, b, h),
                                                   s.template keys_of<T>(a, b, h / s.group),
                                                   s.template values_of<T>(a, b, h / s.group)};
        for (i64 t = 0; t < s.queries; ++t) {
          const T lse = row(head, t, out + s.output_at(b, h) + t * s.features);
          if (saved) saved[(b * s.heads + h) * s.queries + t] = lse;
        }
      }
  }

  static void backward_input(device_context&, const kernel_args& a) {
    for (const tensor_ref& d : a.d_in)
      for (i64 i = 0; d && i < d.count(); ++i) d.template as<T>()[i] = 0;
    const attention_layout s(*a.op, a.d_out.dims);
    for (i64 b = 0; b < s.sequences; ++b)
      for (i64 h = 0; h < s.heads; ++h) {
        const auto x = detail::attention_head<const T>::at(a.in, s, b, h);
        const auto d = detail::attention_head<T>::at(a.d_in, s, b, h);
        for (i64 t = 0; t < s.queries; ++t) {
          const i64 at = s.output_at(b, h) + t * s.features;
          backward_row(x, d, t, a.out.template as<const T>() + at, a.d_out.template as<const T>() + at,
                       static_cast<const T*>(a.saved)[(b * s.heads + h) * s.queries + t]);
        }
      }
  }

 private:
  // Softmax with a running maximum: earlier sums are rescaled when a larger score comes.
  static T row(const detail::attention_head<const T>& head, i64 query, T* y) {
    const attention_layout& s = head.s;
    T largest = head.score(query, 0), sum = 0;
    for (i64 i = 0; i < s.width; ++i) y[i] = 0;
    for (i64 key = 0; key <= s.offset + query; ++key) {
      const T score = head.score(query, key);
      if (score > largest) {
        const T shrink = std::exp(largest - score);
        for (i64 i = 0; i < s.width; ++i) y[i] *= shrink;
        sum *= shrink;
        largest = score;
      }
      const T p = std::exp(score - largest);
      sum += p;
      for (i64 i = 0; i < s.width; ++i) y[i] += p * head.v[key * s.v.stride + i];
    }
    for (i64 i = 0; i < s.width; ++i) y[i] /= sum;
    return largest + std::log(sum);
  }

  static void backward_row(const detail::attention_head<const T>& x, const detail::attention_head<T>& d, i64 query,
                           const T* y, const T* dy, T lse) {
    const attention_layout& s = x.s;
    const T mean_dp = x.dot(y, dy);  // under p
    for (i64 key = 0; key <= s.offset + query; ++key) {
      const T p = std::exp(x.score(query, key) - lse);
      const T ds = p * (x.dot(dy, x.v + key * s.v.stride) - mean_dp) * T(s.scale);
      for (i64 i = 0; i < s.width; ++i) {
        if (d.q) d.q[query * s.q.stride + i] += ds * x.k[key * s.k.stride + i];
        if (d.k) d.k[key * s.k.stride + i] += ds * x.q[query * s.q.stride + i];
        if (d.v) d.v[key * s.v.stride + i] += p * dy[i];
      }
    }
  }
};

}  // namespace fusionllm::inline v0
