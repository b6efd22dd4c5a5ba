// SPDX-License-Identifier: Apache-2.0
// Where the heads of attention lie in memory. Query t of a micro-batch is position `offset` + t, and reads keys 0 ..
// offset + t: with keys of earlier positions in a cache, only `keys` and `offset` change.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "../ops/attention.hpp"
#include "kernel.hpp"

namespace fusionllm::inline v0 {

/// One of q, k, v: head h of sequence b begins at `b * sequence + start + h * width`, its rows are `stride` apart.
struct attention_part {
  i64 start = 0, stride = 0, sequence = 0;
};

struct attention_layout {
  i64 sequences, queries, keys, offset = 0;
  i64 heads, kv_heads, group;  ///< `group` heads of queries read one head of keys and values
  i64 width, features;         ///< of a head, of all heads
  double scale;                ///< 1 / sqrt(width)
  bool side_by_side;           ///< q, k, v are parts of in[0]; else in[0], in[1], in[2]
  attention_part q, k, v;

  attention_layout(const node& op, const extents& out)
      : sequences(out.d[0]),
        queries(out.d[1]),
        keys(out.d[1]),
        heads(op.attr.n[0]),
        kv_heads(op.attr.n[1] ? op.attr.n[1] : heads),
        group(heads / kv_heads),
        width(out.d[2] / heads),
        features(out.d[2]),
        scale(1 / std::sqrt(double(width))),
        side_by_side(op.in[1] < 0) {
    const i64 shared = kv_heads * width, row = side_by_side ? features + 2 * shared : features;
    const i64 kv_row = side_by_side ? row : shared;
    q = {0, row, queries * row};
    k = {side_by_side ? features : 0, kv_row, keys * kv_row};
    v = {side_by_side ? features + shared : 0, kv_row, keys * kv_row};
  }

  /// In decoding, keys and values are read from the state.
  explicit attention_layout(const kernel_args& a) : attention_layout(*a.op, a.out.dims) {
    if (!a.state) return;
    offset = a.past;
    keys = offset + queries;
    const i64 shared = kv_heads * width;
    k = {0, shared, a.longest * shared};
    v = {sequences * k.sequence, shared, k.sequence};
  }
  /// Adds the keys and values of these times to the state.
  template <class T>
  void remember(const kernel_args& a) const {
    const attention_layout fresh(*a.op, a.out.dims);
    const i64 row = kv_heads * width;
    for (i64 b = 0; b < sequences; ++b) {
      const T *from_k = fresh.k_of<const T>(a.in, b, 0), *from_v = fresh.v_of<const T>(a.in, b, 0);
      T* to = static_cast<T*>(a.state) + b * k.sequence + offset * row;
      for (i64 t = 0; t < queries; ++t, to += row) {
        std::copy_n(from_k + t * fresh.k.stride, row, to);
        std::copy_n(from_v + t * fresh.v.stride, row, to + v.start);
      }
    }
  }
  /// Head h of the keys or values that the queries of sequence b read in forward.
  template <class T>
  const T* keys_of(const kernel_args& a, i64 b, i64 h) const {
    return a.state ? kept<T>(a, k, b, h) : k_of<const T>(a.in, b, h);
  }
  template <class T>
  const T* values_of(const kernel_args& a, i64 b, i64 h) const {
    return a.state ? kept<T>(a, v, b, h) : v_of<const T>(a.in, b, h);
  }

  /// Head h of queries of sequence b; head h of its keys or values.
  template <class T>
  T* q_of(const std::array<tensor_ref, max_inputs>& x, i64 b, i64 h) const {
    return at<T>(x[0], q, b, h);
  }
  template <class T>
  T* k_of(const std::array<tensor_ref, max_inputs>& x, i64 b, i64 h) const {
    return at<T>(x[side_by_side ? 0 : 1], k, b, h);
  }
  template <class T>
  T* v_of(const std::array<tensor_ref, max_inputs>& x, i64 b, i64 h) const {
    return at<T>(x[side_by_side ? 0 : 2], v, b, h);
  }
  /// Where head h of sequence b begins in the output, whose rows are `features` apart.
  i64 output_at(i64 b, i64 h) const { return b * queries * features + h * width; }

 private:
  template <class T>
  const T* kept(const kernel_args& a, const attention_part& p, i64 b, i64 h) const {
    return static_cast<const T*>(a.state) + b * p.sequence + p.start + h * width;
  }
  template <class T>
  T* at(const tensor_ref& x, const attention_part& p, i64 b, i64 h) const {
    return x ? x.as<T>() + b * p.sequence + p.start + h * width : nullptr;
  }
};

}  // namespace fusionllm::inline v0
