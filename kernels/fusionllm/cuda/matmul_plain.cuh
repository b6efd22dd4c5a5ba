// SPDX-License-Identifier: Apache-2.0
// The engine of products where the toolkit has no cuBLASLt.
#pragma once

#include <fusionllm/device/cuda.hpp>

#include "block_team.cuh"
#include "check.cuh"
#include "matmul_plain.hpp"

namespace fusionllm::inline v0 {

template <class Team, class Body>
__global__ void __launch_bounds__(block_size) product_kernel(const __grid_constant__ Body body) {
  __shared__ typename Body::template shared<Team> shared;
  body(Team(), shared);
}

class matmul_engine {
 public:
  static constexpr const char* library = "own kernel";

  explicit matmul_engine(cudaStream_t stream, product_precision) : stream_(stream) {}

  void run(const product& p, const product_operands& x) {
    if (p.m == 0 || p.n == 0 || p.k == 0) return;
    detail::with_product_body(p, x, [&](const auto& body) {
      product_kernel<block_team><<<blocks_for(body.work(), 1, 1u << 20), block_size, 0, stream_>>>(body);
    });
    check(cudaGetLastError(), "launch a product");
  }

 private:
  cudaStream_t stream_;
};

}  // namespace fusionllm::inline v0
