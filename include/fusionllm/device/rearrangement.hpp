// SPDX-License-Identifier: Apache-2.0
// Copies between tensors that hold the same elements in another order, in parts that a team may share: what transpose,
// slice and concatenate are on devices whose memory the host reads.
#pragma once

#include <cstring>

#include "kernel.hpp"

namespace fusionllm::inline v0 {

/// The extents before, at and after an axis, each as one.
struct around_axis {
  i64 outer = 1, extent = 1, inner = 1;
  around_axis(const extents& e, i64 axis) : extent(e.d[std::size_t(axis)]) {
    for (i64 i = 0; i < axis; ++i) outer *= e.d[std::size_t(i)];
    for (i64 i = axis + 1; i < e.rank; ++i) inner *= e.d[std::size_t(i)];
  }
};

/// Exchanges two axes of x: seen as (outer, first, middle, second, inner), y is (outer, second, middle, first, inner).
struct axis_exchange {
  i64 outer = 1, first, middle = 1, second, inner = 1;
  /// Of a tensor with extents e, axes a < b.
  axis_exchange(const extents& e, i64 a, i64 b) : first(e.d[std::size_t(a)]), second(e.d[std::size_t(b)]) {
    for (i64 i = 0; i < a; ++i) outer *= e.d[std::size_t(i)];
    for (i64 i = a + 1; i < b; ++i) middle *= e.d[std::size_t(i)];
    for (i64 i = b + 1; i < e.rank; ++i) inner *= e.d[std::size_t(i)];
  }
  /// Rows of y: each has first * inner elements.
  i64 rows() const { return outer * second * middle; }
  template <class T>
  void copy(const T* x, T* y, i64 from_row, i64 to_row) const {
    for (i64 r = from_row; r < to_row; ++r) {
      const i64 m = r % middle, s = r / middle % second, o = r / middle / second;
      const T* source = x + ((o * first * middle + m) * second + s) * inner;
      T* target = y + r * first * inner;
      const i64 step = middle * second * inner;
      if (inner == 1)
        for (i64 f = 0; f < first; ++f) target[f] = source[f * step];
      else
        for (i64 f = 0; f < first; ++f)
          std::memcpy(target + f * inner, source + f * step, std::size_t(inner) * sizeof(T));
    }
  }
};

/// Copies rows of `length` elements; rows of x and of y begin x_step and y_step elements apart.
template <class T>
void copy_rows(const T* x, i64 x_step, T* y, i64 y_step, i64 length, i64 from_row, i64 to_row) {
  for (i64 r = from_row; r < to_row; ++r)
    std::memcpy(y + r * y_step, x + r * x_step, std::size_t(length) * sizeof(T));
}

}  // namespace fusionllm::inline v0
