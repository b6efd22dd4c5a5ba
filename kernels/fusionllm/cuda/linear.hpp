// SPDX-License-Identifier: Apache-2.0
// Linear and tied projection: products (matmul.cuh) with the bias in their epilogue and gradients added in place. With
// activations of 16 bits the fp32 parameters are rounded into the workspace first; gradients of parameters stay fp32.
#pragma once

#include <concepts>

#include <fusionllm/ops/linear.hpp>

#include "matmul_plain.hpp"
#include "row_totals.hpp"

namespace fusionllm::inline v0 {

/// On the host: the body of the plain kernel, on teams of one. A template, so that nvcc makes it of no GPU's team.
template <std::same_as<device_context> Context>
void multiply(Context& c, const product& p, const product_operands& x) {
  if (p.m == 0 || p.n == 0 || p.k == 0) return;
  detail::with_product_body(p, x, [&](const auto& body) { host_launch::blocks(c, body.work(), body, "multiply"); });
}

namespace detail {

template <class T>
struct rounding_body {
  const float* from;
  T* to;
  i64 n;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, (n + 3) / 4, [&](i64 q) {
      if (quad_aligned(from) && quad_aligned(to) && 4 * q + 4 <= n) round<true>(q);
      else round<false>(q);
    });
  }

 private:
  template <bool Whole>
  FL_HD void round(i64 q) const {
    const auto v = load_quad<Whole>(from, 4 * q, n);
    quad<T> r;
    for (int j = 0; j < 4; ++j) r.v[j] = T(v.v[j]);
    store_quad<Whole>(r, to, 4 * q, n);
  }
};

template <class T>
struct row_terms {
  const T* x;
  i64 n;
  FL_HD void operator()(i64 r, i64 i, float (&v)[1]) const { v[0] = float(x[r * n + i]); }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<linear_op, T, Launch> {
  using context = typename Launch::context;
  static constexpr bool rounds = sizeof(T) < sizeof(float);

  /// Of rounded parameters, or of the sums of a bias gradient.
  static constexpr u64 workspace_bytes(const op_view& v) {
    const i64 out = v.out.last(), in = v.in[0].last();
    const u64 sums = row_totals_workspace<1>(v.out.rows(), out) * sizeof(float);
    const u64 rounded = rounds ? padded(u64(out) * u64(in)) + padded(u64(out)) : 0;
    return sums > rounded ? sums : rounded;
  }

  /// x (rows, in), W (out, in), b (out) or absent -> y (rows, out)
  static void forward(context& c, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), in = a.in[0].dims.last(), out = a.out.dims.last();
    auto* memory = static_cast<std::byte*>(a.workspace);
    const T* weight = as_t(c, a.param[0], memory);
    const T* bias = a.param[1] ? as_t(c, a.param[1], memory + padded(u64(out) * u64(in))) : nullptr;
    multiply(c, of({.m = out, .n = rows, .k = in, .transpose_a = true}, dtype_of<T>),
             {weight, a.in[0].data, a.out.data, bias});
  }

  /// dx = dy W
  static void backward_input(context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const i64 rows = a.d_in[0].dims.rows(), in = a.d_in[0].dims.last(), out = a.d_out.dims.last();
    const T* weight = as_t(c, a.param[0], static_cast<std::byte*>(a.workspace));
    multiply(c, of({.m = in, .n = rows, .k = out}, dtype_of<T>), {weight, a.d_out.data, a.d_in[0].data});
  }

  /// dW += dy^T x, db += the sum of dy over rows
  static void backward_weight(context& c, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), in = a.in[0].dims.last(), out = a.d_out.dims.last();
    if (a.d_param[0])
      multiply(c, of({.m = in, .n = out, .k = rows, .transpose_b = true, .add = true}, dtype::f32),
               {a.in[0].data, a.d_out.data, a.d_param[0].data});
    if (!a.d_param[1] || out == 0) return;
    row_totals<Launch>(c, detail::row_terms<T>{a.d_out.template as<const T>(), out}, rows, out,
                       {a.d_param[1].template as<float>()}, static_cast<float*>(a.workspace),
                       "launch the sum of a bias gradient");
  }

 private:
  static constexpr u64 padded(u64 elements) { return (elements * sizeof(T) + 255) / 256 * 256; }
  static product of(product p, dtype out) {
    p.in = dtype_of<T>;
    p.out = out;
    return p;
  }
  static const T* as_t(context& c, const tensor_ref& parameter, [[maybe_unused]] std::byte* memory) {
    if constexpr (!rounds) {
      return parameter.template as<const T>();
    } else {
      const i64 n = parameter.count();
      T* to = reinterpret_cast<T*>(memory);
      Launch::items(c, (n + 3) / 4, detail::rounding_body<T>{parameter.template as<const float>(), to, n},
                    "launch the rounding of a parameter");
      return to;
    }
  }
};

}  // namespace fusionllm::inline v0
