// SPDX-License-Identifier: Apache-2.0
// Sums of a block in fragments of tensor cores, 16 x 16 each, for tiles of 16-bit numbers. Which row of a fragment an
// element of a member's belongs to is asked of the hardware: a tile of row numbers is loaded as sums are. The host sides,
// which nvcc wants for bodies that both compile, do nothing.
#pragma once

#include <mma.h>

#include "block_team.cuh"
#include "tile.hpp"

namespace fusionllm::inline v0 {

namespace detail {
template <class E>
struct tensor_element;
template <>
struct tensor_element<bfloat16> {
  using type = __nv_bfloat16;
};
template <>
struct tensor_element<float16> {
  using type = __half;
};

/// Of this pass of the compiler: cards of 7.5 multiply fp16 only, and train in it.
template <class E>
inline constexpr bool has_tensor_cores =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    std::is_same_v<E, float16>;
#else
    true;
#endif
}  // namespace detail

template <class E, int Rows, int Columns>
  requires(sizeof(E) == 2)
class matrix_part<E, Rows, Columns, block_team> {
  using raw = typename detail::tensor_element<E>::type;
  using sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>;
  static constexpr int across = Columns / 16, all = Rows / 16 * across, warps = int(block_size) / 32;
  static constexpr int own = (all + warps - 1) / warps;  ///< fragments of a warp: `warp_`, then every `warps`-th
  static_assert(Rows % 16 == 0 && Columns % 16 == 0);

 public:
  FL_HD explicit matrix_part(const block_team& team) : warp_(int(team.rank) / 32) {
#ifdef __CUDA_ARCH__
    for (sums& s : sums_) nvcuda::wmma::fill_fragment(s, 0.0f);
#endif
  }
  FL_HD void find_rows([[maybe_unused]] const block_team& team, [[maybe_unused]] float* scratch) {
#ifdef __CUDA_ARCH__
    scratch[team.rank] = float(team.rank / 16);
    team.wait();
    sums rows;
    nvcuda::wmma::load_matrix_sync(rows, scratch, 16, nvcuda::wmma::mem_row_major);
    for (int i = 0; i < rows.num_elements; ++i) row_[i] = int(rows.x[i]);
    team.wait();
#endif
  }
  template <int K, class A, class B>
  FL_HD void multiply([[maybe_unused]] const A& a, [[maybe_unused]] const B& b) {
#ifdef __CUDA_ARCH__
    if constexpr (detail::has_tensor_cores<E>)
      for (int n = 0; n < own; ++n) {
        if (place(n) >= all) continue;
        for (int k = 0; k < K; k += 16) {
          nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, raw, order<A>> x;
          nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, raw, order<B>> y;
          nvcuda::wmma::load_matrix_sync(x, at(a, row(n), k), leading<A>);
          nvcuda::wmma::load_matrix_sync(y, at(b, k, column(n)), leading<B>);
          nvcuda::wmma::mma_sync(sums_[n], x, y, sums_[n]);
        }
      }
#endif
  }
  FL_HD void scale_rows([[maybe_unused]] const float* factor) {
#ifdef __CUDA_ARCH__
    for (int n = 0; n < own; ++n)
      if (place(n) < all)
        for (int i = 0; i < sums_[n].num_elements; ++i) sums_[n].x[i] *= factor[row(n) + row_[i]];
#endif
  }
  template <int Row>
  FL_HD void store([[maybe_unused]] float* to) {
#ifdef __CUDA_ARCH__
    for (int n = 0; n < own; ++n)
      if (place(n) < all)
        nvcuda::wmma::store_matrix_sync(to + row(n) * Row + column(n), sums_[n], Row, nvcuda::wmma::mem_row_major);
#endif
  }

 private:
  template <class V>
  using order = std::conditional_t<V::column == 1, nvcuda::wmma::row_major, nvcuda::wmma::col_major>;
  template <class V>
  static constexpr unsigned leading = V::column == 1 ? V::row : V::column;
  template <class V>
  FL_HD static const raw* at(const V& v, int r, int c) {
    return reinterpret_cast<const raw*>(v.data) + r * V::row + c * V::column;
  }
  FL_HD int place(int n) const { return warp_ + n * warps; }
  FL_HD int row(int n) const { return place(n) / across * 16; }
  FL_HD int column(int n) const { return place(n) % across * 16; }

  sums sums_[own];
  int row_[sums::num_elements];
  int warp_;
};

}  // namespace fusionllm::inline v0
