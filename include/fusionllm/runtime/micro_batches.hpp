// SPDX-License-Identifier: Apache-2.0
// How the rows of a batch become micro-batches: in order, as evenly as they go, the first ones one row longer.
#pragma once

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

struct row_range {
  i64 begin = 0;
  i64 end = 0;
  constexpr i64 count() const { return end - begin; }
};

/// Rows of micro-batch m; 10 rows in 4 micro-batches are 3, 3, 2, 2.
constexpr row_range rows_of(i64 rows, int micro_batches, int m) {
  const i64 each = rows / micro_batches, longer = rows % micro_batches;
  const i64 begin = each * m + (m < longer ? m : longer);
  return {begin, begin + each + (m < longer ? 1 : 0)};
}

/// How many micro-batches have rows: the first ones.
constexpr int filled(i64 rows, int micro_batches) { return rows < micro_batches ? int(rows) : micro_batches; }

/// What is left of a running statistic after the values of n more micro-batches.
constexpr double kept(double momentum, int n) {
  double x = 1;
  for (int i = 0; i < n; ++i) x *= 1 - momentum;
  return x;
}

}  // namespace fusionllm::inline v0
