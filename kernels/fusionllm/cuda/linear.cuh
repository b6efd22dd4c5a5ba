// SPDX-License-Identifier: Apache-2.0
// Linear and tied projection on the GPU: products by cuBLASLt, the bias in its epilogue, gradients added by its beta.
#pragma once

#include <fusionllm/ops/linear.hpp>

#include "block_team.cuh"
#include "chain.cuh"
#include "column_sum.hpp"
#include "context.cuh"

namespace fusionllm::inline v0 {

template <class Team>
__global__ void __launch_bounds__(block_size) column_sum_kernel(const float* x, i64 rows, i64 columns, float* sum) {
  __shared__ float shared[block_size];
  column_sum(Team(), x, rows, columns, sum, shared);
}

template <>
struct kernel<linear_op, cuda> {
  /// x (rows, in), W (out, in), b (out) or absent -> y (rows, out)
  static void forward(cuda::context& c, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), in = a.in[0].dims.last(), out = a.out.dims.last();
    c.stream();
    c.matmul.run({.m = out, .n = rows, .k = in, .transpose_a = true}, a.param[0].as<const float>(),
                 a.in[0].as<const float>(), a.out.as<float>(), a.param[1].as<const float>());
  }

  /// dx = dy W
  static void backward_input(cuda::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const i64 rows = a.d_in[0].dims.rows(), in = a.d_in[0].dims.last(), out = a.d_out.dims.last();
    c.stream();
    c.matmul.run({.m = in, .n = rows, .k = out}, a.param[0].as<const float>(), a.d_out.as<const float>(),
                 a.d_in[0].as<float>());
  }

  /// dW += dy^T x, db += the sum of dy over rows
  static void backward_weight(cuda::context& c, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), in = a.in[0].dims.last(), out = a.d_out.dims.last();
    const cudaStream_t stream = c.stream();
    if (a.d_param[0])
      c.matmul.run({.m = in, .n = out, .k = rows, .transpose_b = true, .add = true}, a.in[0].as<const float>(),
                   a.d_out.as<const float>(), a.d_param[0].as<float>());
    if (!a.d_param[1] || out == 0) return;
    const u32 blocks = blocks_for(out, column_lanes(block_size), c.blocks());
    column_sum_kernel<block_team>
        <<<blocks, block_size, 0, stream>>>(a.d_out.as<const float>(), rows, out, a.d_param[1].as<float>());
    check(cudaGetLastError(), "launch the sum of a bias gradient");
  }
};

}  // namespace fusionllm::inline v0
