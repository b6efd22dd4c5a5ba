// SPDX-License-Identifier: Apache-2.0
// What a product of two matrices is: the question that matmul.cuh answers, with a library or with own kernels.
#pragma once

#include <tuple>

#include <fusionllm/core/half.hpp>

namespace fusionllm::inline v0 {

/// D (m, n) = op(A) op(B), columns lying one after another, so that a row-major (rows, columns) tensor is its
/// (columns, rows) matrix. op(A) is (m, k), op(B) is (k, n). Sums are fp32.
struct product {
  i64 m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool add = false;           ///< D = D + ...
  bool bias = false;          ///< plus a number for each row of D, of D's type; then
  bool gelu = false;          ///< gelu of the result, tanh form
  bool keep = false;          ///< with gelu: what it is applied to is kept too, as D lies
  dtype in = dtype::f32;      ///< of A and B: f32, bf16 or f16
  dtype out = dtype::f32;     ///< of D: f32, or that of A
  u32 alignment = 16;         ///< of A, B and D in bytes: algorithms with wide loads need it
  auto key() const {
    return std::tuple(m, n, k, transpose_a, transpose_b, add, bias, gelu, keep, in, out, alignment);
  }
  bool operator<(const product& o) const { return key() < o.key(); }
};

/// Where its matrices lie. `kept`: see product::keep.
struct product_operands {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  void* kept = nullptr;

  /// The largest power of two up to 256 that divides all addresses.
  u32 alignment() const {
    std::size_t bits = 256;
    for (const void* p : {a, b, static_cast<const void*>(d)}) bits |= reinterpret_cast<std::size_t>(p);
    return u32(bits & (~bits + 1));
  }
};

}  // namespace fusionllm::inline v0
