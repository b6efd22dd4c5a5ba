// SPDX-License-Identifier: Apache-2.0
// The vector loops of the CPU kernels as a table, one an instruction set. No loop depends on the alignment of its
// arguments, and none allocates.
#pragma once

#include "../../core/philox.hpp"
#include "../adamw.hpp"
#include "vector_isa.hpp"

namespace fusionllm::inline v0 {

/// Loops over contiguous floats. Sums over rows are formed in double, in ascending order of rows.
struct loop_table {
  int width;  ///< floats in a vector

  // element-wise, n elements
  /// x (rows, n) -> out (n, rows), for rows [from, to)
  void (*transpose)(const float* x, i64 rows, i64 n, i64 from, i64 to, float* out);
  void (*add)(const float* x, const float* y, float* out, i64 n);
  void (*multiply)(const float* x, const float* y, float* out, i64 n);
  void (*relu)(const float* x, float* out, i64 n);
  /// dx = d where x > 0, else 0
  void (*relu_backward)(const float* x, const float* d, float* dx, i64 n);
  void (*gelu)(const float* x, float* out, i64 n);
  /// dx = d * gelu'(x)
  void (*gelu_backward)(const float* x, const float* d, float* dx, i64 n);
  void (*silu)(const float* x, float* out, i64 n);
  /// dx = d * silu'(x)
  void (*silu_backward)(const float* x, const float* d, float* dx, i64 n);
  /// The random words of elements first .. first + n - 1; first is a multiple of 4.
  void (*random_words)(const random_key& key, u64 first, u32* out, i64 n);
  /// out[i] = x[i] * scale where the word's `uniform` is at least p, else 0
  void (*dropout)(const float* x, const u32* words, float* out, i64 n, float p, float scale);

  // rows of n features
  /// y = (x - mean) * reciprocal * weight + bias; mean and reciprocal of each row are stored unless null
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float epsilon, float* y, float* mean,
                     float* reciprocal, i64 rows, i64 n);
  void (*layer_norm_backward)(const float* x, const float* dy, const float* weight, const float* mean,
                              const float* reciprocal, const float* partial, float* dx, i64 rows, i64 n);
  /// sums (n) += the sum over rows, which are `stride` apart, of dy * (x - mean) * reciprocal, n columns
  void (*layer_norm_weight)(const float* x, const float* dy, const float* mean, const float* reciprocal, i64 rows,
                            i64 stride, i64 n, double* sums);
  /// sums (n) += the sum over rows of x
  void (*add_column_sums)(const float* x, i64 rows, i64 stride, i64 n, double* sums);

  // batch norm, n pixels of one channel
  double (*sum_of)(const float* x, i64 n);
  double (*sum_of_squared_deviations)(const float* x, float mean, i64 n);
  /// y = (x - mean) * scale + bias
  void (*normalize)(const float* x, float mean, float scale, float bias, float* y, i64 n);
  /// sums (2) += the sums of dy and of dy * (x - mean)
  void (*batch_norm_sums)(const float* x, const float* dy, float mean, i64 n, double* sums);
  /// dx = (dy - d_mean - (x - mean) * slope) * scale, plus partial unless that is null
  void (*batch_norm_backward)(const float* x, const float* dy, float mean, float d_mean, float slope, float scale,
                              const float* partial, float* dx, i64 n);

  // softmax
  /// A block of scores s (rows, stride), of which row r has columns 0 .. first + r: s becomes exp(scale * (s - max)), 0
  /// to the right up to `columns`; reciprocal (rows) of its row sums; lse (rows), unless null, scale * max + log(sum).
  void (*causal_softmax)(float* s, i64 stride, i64 rows, i64 first, i64 columns, float scale, float* reciprocal,
                         float* lse);
  /// s becomes p = exp(scale * s - lse), dp becomes scale * p * (dp - delta), both 0 to the right of first + r.
  void (*causal_softmax_backward)(float* s, float* dp, i64 stride, i64 rows, i64 first, i64 columns, float scale,
                                  const float* lse, const float* delta);
  /// x (n) *= factor
  void (*scale)(float* x, i64 n, float factor);
  float (*dot)(const float* x, const float* y, i64 n);
  float (*log_sum_exp)(const float* x, i64 n, float* rest);
  /// d = scale * exp(x - lse), in place if d == x
  void (*softmax_gradient)(const float* x, float lse, float rest, float scale, float* d, i64 n);

  // updates
  void (*adamw)(float* weight, const float* gradient, float* m, float* v, i64 n, const adamw_factors<float>& f);
  /// Adds n squares to the columns of device/sum_of_squares.hpp; n is a multiple of their number.
  void (*sum_of_squares)(const float* x, i64 n, double* columns);
};

}  // namespace fusionllm::inline v0
