// SPDX-License-Identifier: Apache-2.0
// The team that is a CUDA block of `block_size` threads. Its members exist on the device only; the host sides, which
// nvcc wants for bodies that both compile, do nothing.
#pragma once

#include <cub/block/block_scan.cuh>

#include "team.hpp"

namespace fusionllm::inline v0 {

class block_team {
 public:
  using scan = cub::BlockScan<u64, int(block_size)>;
  using scratch = typename scan::TempStorage;

  static constexpr u32 size = block_size;
  u32 rank = 0, index = 0, count = 1;

  /// The calling block. `shared` is scratch in shared memory, null for bodies that sum nothing.
  __device__ explicit block_team(scratch* shared = nullptr)
      : rank(threadIdx.x), index(blockIdx.x), count(gridDim.x), shared_(shared) {}

  FL_HD void wait() const {
#ifdef __CUDA_ARCH__
    __syncthreads();
#endif
  }
  FL_HD u64 sum_before(u64 v, u64& total) const {
    u64 before = 0;
#ifdef __CUDA_ARCH__
    scan(*shared_).ExclusiveSum(v, before, total);
    __syncthreads();  // the scratch may be used again
#else
    total = v;
#endif
    return before;
  }
  FL_HD void add([[maybe_unused]] u32* to, [[maybe_unused]] u32 v) const {
#ifdef __CUDA_ARCH__
    atomicAdd(to, v);
#endif
  }

 private:
  scratch* shared_;
};

}  // namespace fusionllm::inline v0
