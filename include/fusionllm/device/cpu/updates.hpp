// SPDX-License-Identifier: Apache-2.0
// The optimizer's loops on the CPU: same bits as the plain ones of device/adamw.hpp and device/sum_of_squares.hpp, for
// every instruction set and number of threads.
#pragma once

#include "../sum_of_squares.hpp"
#include "context.hpp"

namespace fusionllm::inline v0 {

/// AdamW on n elements.
inline void adamw_update(cpu_context& c, float* weight, const float* gradient, float* m, float* v, i64 n,
                         const adamw_factors<float>& f) {
  c.team.split(n, 4096, [&](i64 begin, i64 end) {
    c.loops.adamw(weight + begin, gradient + begin, m + begin, v + begin, end - begin, f);
  });
}

/// The sum of n squares.
inline double sum_of_squares(cpu_context& c, const float* x, i64 n) {
  constexpr i64 at_once = 64;
  double sum = 0;
  for (i64 at = 0; at < n; at += at_once * sum_of_squares_block) {
    const i64 left = n - at < at_once * sum_of_squares_block ? n - at : at_once * sum_of_squares_block;
    double block[at_once];
    c.pieces(left, sum_of_squares_block, [&](i64 begin, i64 end) {
      block[begin / sum_of_squares_block] =
          sum_of_squares_of_block(x + at + begin, end - begin, c.loops.sum_of_squares);
    });
    for (i64 i = 0; i * sum_of_squares_block < left; ++i) sum += block[i];
  }
  return sum;
}

}  // namespace fusionllm::inline v0
