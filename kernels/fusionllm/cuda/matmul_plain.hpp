// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a kernel of our own, for toolkits without cuBLASLt: right, and slow. A team takes tiles of D in
// turn, and steps over k with a slice of A and one of B in shared memory; a member sums part of the tile in registers.
#pragma once

#include <fusionllm/ops/gelu.hpp>

#include "product.hpp"
#include "team_kernel.hpp"

namespace fusionllm::inline v0::detail {

template <class In, class Out>
struct product_body {
  product p;
  product_operands x;

  static constexpr i64 side = 64, depth = 16;  ///< of a tile, of a slice
  static constexpr i64 tiles(i64 n) { return (n + side - 1) / side; }
  constexpr i64 work() const { return tiles(p.m) * tiles(p.n); }

  template <class Team>
  struct shared {
    float a[depth][side + 1], b[depth][side + 1];
  };

  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& s) const {
    // Members form a square of `across` by `across`, each with its part of the tile.
    constexpr i64 across = Team::size >= 256 ? 16 : Team::size >= 64 ? 8 : Team::size >= 16 ? 4 : Team::size >= 4 ? 2 : 1;
    constexpr i64 part = side / across;
    const i64 row = i64(team.rank) % across, column = i64(team.rank) / across;
    each_row(team, work(), [&](i64 tile) {
      const i64 m0 = tile % tiles(p.m) * side, n0 = tile / tiles(p.m) * side;
      float sum[part][part] = {};
      for (i64 k0 = 0; k0 < p.k; k0 += depth) {
        each_member(team, side * depth, [&](i64 i) {
          s.a[i / side][i % side] = a_at(m0 + i % side, k0 + i / side);
          s.b[i / side][i % side] = b_at(k0 + i / side, n0 + i % side);
        });
        team.wait();
        if (column < across)
          for (i64 k = 0; k < depth; ++k)
            for (i64 i = 0; i < part; ++i)
              for (i64 j = 0; j < part; ++j) sum[i][j] += s.a[k][row + i * across] * s.b[k][column + j * across];
        team.wait();
      }
      if (column < across)
        for (i64 i = 0; i < part; ++i)
          for (i64 j = 0; j < part; ++j) finish(m0 + row + i * across, n0 + column + j * across, sum[i][j]);
    });
  }

 private:
  FL_HD float a_at(i64 m, i64 k) const {
    if (m >= p.m || k >= p.k) return 0;
    return float(static_cast<const In*>(x.a)[p.transpose_a ? m * p.k + k : k * p.m + m]);
  }
  FL_HD float b_at(i64 k, i64 n) const {
    if (n >= p.n || k >= p.k) return 0;
    return float(static_cast<const In*>(x.b)[p.transpose_b ? k * p.n + n : n * p.k + k]);
  }
  FL_HD void finish(i64 m, i64 n, float v) const {
    if (m >= p.m || n >= p.n) return;
    Out& d = static_cast<Out*>(x.d)[n * p.m + m];
    if (p.add) v = float(d) + v;
    if (x.bias) v += float(static_cast<const Out*>(x.bias)[m]);
    if (x.kept) static_cast<Out*>(x.kept)[n * p.m + m] = Out(v);
    if (p.gelu) v = gelu_op::apply<float>(scalar_part::value, v, 0, 0, scalar_args{});
    d = Out(v);
  }
};

/// Calls f(body) for the types of a product.
template <class F>
void with_product_body(const product& p, const product_operands& x, F&& f) {
  if (p.in == dtype::f32) f(product_body<float, float>{p, x});
  else if (p.in == dtype::bf16 && p.out == dtype::f32) f(product_body<bfloat16, float>{p, x});
  else if (p.in == dtype::bf16) f(product_body<bfloat16, bfloat16>{p, x});
  else if (p.out == dtype::f32) f(product_body<float16, float>{p, x});
  else f(product_body<float16, float16>{p, x});
}

}  // namespace fusionllm::inline v0::detail
