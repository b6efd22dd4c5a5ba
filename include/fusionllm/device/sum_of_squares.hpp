// SPDX-License-Identifier: Apache-2.0
// A sum of squares in double whose bits depend on the elements alone: element i goes to column i % 16, columns are
// summed in ascending order within blocks of 65,536 elements, the columns of a block pairwise, the blocks in order.
// Squares of floats are exact in double, so that contraction changes nothing. For the norm of a gradient.
#pragma once

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

inline constexpr i64 sum_of_squares_block = i64(1) << 16;
inline constexpr int sum_of_squares_columns = 16;

namespace detail {
template <class T>
void add_squares_to_columns(const T* x, i64 n, double* column) {
  for (i64 i = 0; i < n; ++i) column[i % sum_of_squares_columns] += double(x[i]) * double(x[i]);
}
inline double sum_of_columns(double* column) {
  for (int half = sum_of_squares_columns / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) column[i] += column[i + half];
  return column[0];
}
}  // namespace detail

/// The sum of one block of at most `sum_of_squares_block` elements. `add(x, n, columns)` may be a faster loop.
template <class T, class Add>
double sum_of_squares_of_block(const T* x, i64 n, Add add) {
  double column[sum_of_squares_columns] = {};
  const i64 whole = n - n % sum_of_squares_columns;
  add(x, whole, column);
  detail::add_squares_to_columns(x + whole, n - whole, column);
  return detail::sum_of_columns(column);
}

/// The sum of all n squares, in plain code.
template <class T>
double sum_of_squares(const T* x, i64 n) {
  double sum = 0;
  for (i64 i = 0; i < n; i += sum_of_squares_block)
    sum += sum_of_squares_of_block(x + i, n - i < sum_of_squares_block ? n - i : sum_of_squares_block,
                                   [](const T* p, i64 m, double* c) { detail::add_squares_to_columns(p, m, c); });
  return sum;
}

}  // namespace fusionllm::inline v0
