// SPDX-License-Identifier: Apache-2.0
// Causal attention, a (sequence, head) a task: blocks of queries against all keys up to the block's end, so that most
// of the upper triangle is never computed and no more than two blocks of scores exist a thread. Forward keeps each
// row's log-sum-exp; backward recomputes the probabilities from it.
#pragma once

#include <cmath>

#include "../../ops/attention.hpp"
#include "device.hpp"
#include "gemm.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<attention_op, cpu> {
  static void forward(cpu_context& c, const kernel_args& a) {
    const layout s(a, a.out.dims);
    const float* qkv = a.in[0].as<const float>();
    float *out = a.out.as<float>(), *saved = static_cast<float*>(a.saved);
    c.each(s.sequences * s.heads, [&](int rank, i64 task) {
      const float* q = qkv + s.input_at(task);
      const float *k = q + s.features, *v = k + s.features;
      float* o = out + s.output_at(task);
      float* scores = c.scratch(rank, block * s.steps + block);
      float* reciprocal = scores + block * s.steps;
      for (i64 from = 0; from < s.steps; from += block) {
        const i64 to = s.end_of(from), rows = to - from;
        detail::gemm(rows, to, s.width, {q + from * s.stride, s.stride}, {k, s.stride, 'T'}, scores, to, false);
        c.loops.causal_softmax(scores, to, rows, from, to, s.scale, reciprocal,
                               saved ? saved + task * s.steps + from : nullptr);
        detail::gemm(rows, s.width, to, {scores, to}, {v, s.stride}, o + from * s.features, s.features, false);
        for (i64 r = 0; r < rows; ++r) c.loops.scale(o + (from + r) * s.features, s.width, reciprocal[r]);
      }
    });
  }

  // With P the probabilities: dV = P^T dO, dP = dO V^T, dS = P (dP - rows' sums of O dO), dQ = dS K, dK = dS^T Q.
  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* d_qkv = a.d_in[0].as<float>();
    if (!d_qkv) return;
    const layout s(a, a.d_out.dims);
    const float *qkv = a.in[0].as<const float>(), *out = a.out.as<const float>(), *d_out = a.d_out.as<const float>();
    const float* saved = static_cast<const float*>(a.saved);
    c.each(s.sequences * s.heads, [&](int rank, i64 task) {
      const float* q = qkv + s.input_at(task);
      const float *k = q + s.features, *v = k + s.features;
      float* dq = d_qkv + s.input_at(task);
      float *dk = dq + s.features, *dv = dk + s.features;
      const float *o = out + s.output_at(task), *d_o = d_out + s.output_at(task);
      float* p = c.scratch(rank, 2 * block * s.steps + block);
      float *ds = p + block * s.steps, *delta = ds + block * s.steps;
      // The last block comes first: it reaches all keys, so that the others only add to what is there.
      for (i64 from = (s.steps - 1) / block * block; from >= 0; from -= block) {
        const i64 to = s.end_of(from), rows = to - from;
        const bool add = to < s.steps;
        const detail::matrix q_rows{q + from * s.stride, s.stride}, d_rows{d_o + from * s.features, s.features};
        for (i64 r = 0; r < rows; ++r)
          delta[r] = c.loops.dot(o + (from + r) * s.features, d_o + (from + r) * s.features, s.width);
        detail::gemm(rows, to, s.width, q_rows, {k, s.stride, 'T'}, p, to, false);
        detail::gemm(rows, to, s.width, d_rows, {v, s.stride, 'T'}, ds, to, false);
        c.loops.causal_softmax_backward(p, ds, to, rows, from, to, s.scale, saved + task * s.steps + from, delta);
        detail::gemm(to, s.width, rows, {p, to, 'T'}, d_rows, dv, s.stride, add);
        detail::gemm(to, s.width, rows, {ds, to, 'T'}, q_rows, dk, s.stride, add);
        detail::gemm(rows, s.width, to, {ds, to}, {k, s.stride}, dq + from * s.stride, s.stride, false);
      }
    });
  }

 private:
  static constexpr i64 block = 64;  ///< queries in a block

  struct layout {
    i64 sequences, steps, features, heads, width, stride;
    float scale;
    layout(const kernel_args& a, const extents& out)
        : sequences(out.d[0]),
          steps(out.d[1]),
          features(out.d[2]),
          heads(a.op->attr.n[0]),
          width(features / heads),
          stride(3 * features),
          scale(float(1 / std::sqrt(double(width)))) {}
    i64 input_at(i64 task) const { return task / heads * steps * stride + task % heads * width; }
    i64 output_at(i64 task) const { return task / heads * steps * features + task % heads * width; }
    i64 end_of(i64 from) const { return from + block < steps ? from + block : steps; }
  };
};

}  // namespace fusionllm::inline v0
