// SPDX-License-Identifier: Apache-2.0
// A sum in eight columns, so that a compiler may keep them in vectors: one fixed order, whatever the vectors' width.
#pragma once

#include "../../core/types.hpp"

namespace fusionllm::inline v0::detail {

/// The sum of at(0) .. at(n - 1), which are floats or doubles.
template <class At>
auto sum_in_columns(i64 n, At at) {
  constexpr int columns = 8;
  decltype(at(i64(0))) s[columns] = {};
  i64 i = 0;
  for (; i + columns <= n; i += columns)
    for (int k = 0; k < columns; ++k) s[k] += at(i + k);
  for (int k = 0; i + k < n; ++k) s[k] += at(i + k);
  for (int half = columns / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) s[k] += s[k + half];
  return s[0];
}

}  // namespace fusionllm::inline v0::detail
