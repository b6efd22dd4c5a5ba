// SPDX-License-Identifier: Apache-2.0
// Causal attention in blocks of queries against all keys up to the block's end, so that most of the upper triangle is
// never computed and no more than two blocks of scores exist a thread. A task is a (sequence, head), in backward with
// all heads that read one head of keys. Forward keeps each row's log-sum-exp; backward recomputes the probabilities.
#pragma once

#include "../attention_layout.hpp"
#include "device.hpp"
#include "gemm.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<attention_op, cpu> {
  static void forward(cpu_context& c, const kernel_args& a) {
    const attention_layout s(a);
    if (a.state) s.remember<float>(a);
    float *out = a.out.as<float>(), *saved = static_cast<float*>(a.saved);
    c.each(s.sequences * s.heads, [&](int rank, i64 task) {
      const i64 b = task / s.heads, h = task % s.heads;
      const float* q = s.q_of<const float>(a.in, b, h);
      const float *k = s.keys_of<float>(a, b, h / s.group), *v = s.values_of<float>(a, b, h / s.group);
      float* o = out + s.output_at(b, h);
      float* scores = c.scratch(rank, block * s.keys + block);
      float* reciprocal = scores + block * s.keys;
      for (i64 from = 0; from < s.queries; from += block) {
        const i64 to = end_of(s, from), rows = to - from, keys = s.offset + to;
        detail::gemm(rows, keys, s.width, {q + from * s.q.stride, s.q.stride}, {k, s.k.stride, 'T'}, scores, keys,
                     false);
        c.loops.causal_softmax(scores, keys, rows, s.offset + from, keys, float(s.scale), reciprocal,
                               saved ? saved + task * s.queries + from : nullptr);
        detail::gemm(rows, s.width, keys, {scores, keys}, {v, s.v.stride}, o + from * s.features, s.features, false);
        for (i64 r = 0; r < rows; ++r) c.loops.scale(o + (from + r) * s.features, s.width, reciprocal[r]);
      }
    });
  }

  static void backward_input(cpu_context& c, const kernel_args& a) {
    if (!a.d_in[0] && !a.d_in[1] && !a.d_in[2]) return;
    const attention_layout s(*a.op, a.d_out.dims);
    c.each(s.sequences * s.kv_heads, [&](int rank, i64 task) {
      float* scratch = c.scratch(rank, 2 * block * s.keys + block);
      for (i64 h = task % s.kv_heads * s.group, first = h; h < first + s.group; ++h)
        backward_head(c, a, s, task / s.kv_heads, h, scratch, h > first);
    });
  }

 private:
  static constexpr i64 block = 64;  ///< queries in a block
  static i64 end_of(const attention_layout& s, i64 from) { return from + block < s.queries ? from + block : s.queries; }

  // With P the probabilities: dV = P^T dO, dP = dO V^T, dS = P (dP - rows' sums of O dO), dQ = dS K, dK = dS^T Q.
  // `add`: another head's part is in dK and dV already.
  static void backward_head(cpu_context& c, const kernel_args& a, const attention_layout& s, i64 b, i64 h,
                            float* scratch, bool add) {
    const i64 kv = h / s.group, at = s.output_at(b, h);
    const float* q = s.q_of<const float>(a.in, b, h);
    const float *k = s.k_of<const float>(a.in, b, kv), *v = s.v_of<const float>(a.in, b, kv);
    float *dq = s.q_of<float>(a.d_in, b, h), *dk = s.k_of<float>(a.d_in, b, kv), *dv = s.v_of<float>(a.d_in, b, kv);
    const float *o = a.out.as<const float>() + at, *d_o = a.d_out.as<const float>() + at;
    const float* saved = static_cast<const float*>(a.saved) + (b * s.heads + h) * s.queries;
    float *p = scratch, *ds = p + block * s.keys, *delta = ds + block * s.keys;
    // The last block comes first: it reaches all keys, so that the others only add to what is there.
    for (i64 from = (s.queries - 1) / block * block; from >= 0; from -= block) {
      const i64 to = end_of(s, from), rows = to - from, keys = s.offset + to;
      const detail::matrix q_rows{q + from * s.q.stride, s.q.stride}, d_rows{d_o + from * s.features, s.features};
      for (i64 r = 0; r < rows; ++r)
        delta[r] = c.loops.dot(o + (from + r) * s.features, d_o + (from + r) * s.features, s.width);
      detail::gemm(rows, keys, s.width, q_rows, {k, s.k.stride, 'T'}, p, keys, false);
      detail::gemm(rows, keys, s.width, d_rows, {v, s.v.stride, 'T'}, ds, keys, false);
      c.loops.causal_softmax_backward(p, ds, keys, rows, s.offset + from, keys, float(s.scale), saved + from, delta);
      if (dv) detail::gemm(keys, s.width, rows, {p, keys, 'T'}, d_rows, dv, s.v.stride, add);
      if (dk) detail::gemm(keys, s.width, rows, {ds, keys, 'T'}, q_rows, dk, s.k.stride, add);
      if (dq)
        detail::gemm(rows, s.width, keys, {ds, keys}, {k, s.k.stride}, dq + from * s.q.stride, s.q.stride, false);
      add = true;
    }
  }
};

}  // namespace fusionllm::inline v0
