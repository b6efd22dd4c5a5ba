// SPDX-License-Identifier: Apache-2.0
// Causal attention by our own kernels, grouped queries and decoding included: what runs where cuDNN is not.
#pragma once

#include <fusionllm/core/error.hpp>

#include "attention_backward.hpp"
#include "attention_forward.hpp"

namespace fusionllm::inline v0 {

template <class T, class Launch>
struct team_kernel<attention_op, T, Launch> {
  static constexpr u64 workspace_bytes(const op_view& v) { return attention_op::saved(v) * sizeof(float); }

  static void forward(typename Launch::context& c, const kernel_args& a) {
    const attention_layout layout(a);
    const detail::attention_shape s(layout);
    detail::attention_heads<const T> x(a.in, layout);
    if (a.state) {
      const attention_layout fresh(*a.op, a.out.dims);
      Launch::rows(c, s.sequences * s.queries, s.kv_heads * s.width,
                   detail::attention_remember<T>{s, detail::attention_heads<const T>(a.in, fresh),
                                                 static_cast<T*>(a.state), layout.k, layout.v},
                   "launch the keeping of keys and values");
      x.k = x.v = static_cast<const T*>(a.state);
    }
    for_width(s.width, [&]<int W>(std::integral_constant<int, W>) {
      const detail::attention_forward<T, W> body{s, x, a.out.template as<T>(), static_cast<float*>(a.saved)};
      Launch::blocks(c, tiles(s.queries, body.queries) * s.sequences * s.heads, body, "launch attention");
    });
  }

  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    const attention_layout layout(*a.op, a.d_out.dims);
    const detail::attention_shape s(layout);
    const detail::attention_heads<T> d(a.d_in, layout);
    const T* d_out = a.d_out.template as<const T>();
    float* dots = static_cast<float*>(a.workspace);
    Launch::rows(c, s.sequences * s.heads * s.queries, s.width,
                 detail::attention_dots<T>{s, a.out.template as<const T>(), d_out, dots},
                 "launch the cotangents of attention");
    for_width(s.width, [&]<int W>(std::integral_constant<int, W>) {
      const detail::attention_pair<T, W> pair{s, detail::attention_heads<const T>(a.in, layout), d_out,
                                              static_cast<const float*>(a.saved), dots};
      if (d.q)
        Launch::blocks(c, tiles(s.queries, pair.edge) * s.sequences * s.heads,
                       detail::attention_query_cotangent<T, W>{pair, d}, "launch the cotangent of queries");
      if (d.k || d.v)
        Launch::blocks(c, tiles(s.keys, pair.edge) * s.sequences * s.kv_heads,
                       detail::attention_key_cotangent<T, W>{pair, d}, "launch the cotangents of keys and values");
    });
  }

 private:
  static constexpr i64 tiles(i64 n, i64 edge) { return (n + edge - 1) / edge; }

  template <class F>
  static void for_width(i64 width, F&& f) {
    if (width > widest_head)
      fail(errc::model, "attention with heads of width ", width, " on a GPU: expected at most ", widest_head,
           "; use more heads, or plan this operator on a cpu peer");
    switch (padded_width(width)) {
      case 64: return f(std::integral_constant<int, 64>{});
      case 128: return f(std::integral_constant<int, 128>{});
      default: return f(std::integral_constant<int, 256>{});
    }
  }
};

}  // namespace fusionllm::inline v0
