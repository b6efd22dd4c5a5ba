// SPDX-License-Identifier: Apache-2.0
// The teams that are a CUDA block of `block_size` threads, and one of its warps. Their members exist on the device only;
// the host sides, which nvcc wants for bodies that both compile, do nothing.
#pragma once

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "team.hpp"

namespace fusionllm::inline v0 {

namespace detail {
struct larger {
  FL_HD float operator()(float a, float b) const { return b > a ? b : a; }
};
struct plus {
  template <class T>
  FL_HD T operator()(T a, T b) const {
    return a + b;
  }
};
}  // namespace detail

class block_team {
 public:
  using scan = cub::BlockScan<u64, int(block_size)>;
  template <class T>
  using reduce = cub::BlockReduce<T, int(block_size)>;
  struct scratch {
    union {
      typename scan::TempStorage scan;
      typename reduce<float>::TempStorage of_floats;
      typename reduce<double>::TempStorage of_doubles;
    };
    double result;  ///< of a reduction, for all members
  };

  static constexpr u32 size = block_size;
  static constexpr u32 per_block = 1;
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
    scan(shared_->scan).ExclusiveSum(v, before, total);
    __syncthreads();  // the scratch may be used again
#else
    total = v;
#endif
    return before;
  }
  FL_HD float sum(float v) const { return reduced(v, detail::plus{}); }
  FL_HD double sum(double v) const { return reduced(v, detail::plus{}); }
  FL_HD float largest(float v) const { return reduced(v, detail::larger{}); }
  FL_HD bool any(bool v) const {
#ifdef __CUDA_ARCH__
    return __syncthreads_or(v);
#else
    return v;
#endif
  }
  FL_HD void add([[maybe_unused]] u32* to, [[maybe_unused]] u32 v) const {
#ifdef __CUDA_ARCH__
    atomicAdd(to, v);
#endif
  }

 private:
  template <class T, class Op>
  FL_HD T reduced(T v, [[maybe_unused]] Op op) const {
#ifdef __CUDA_ARCH__
    T r;
    if constexpr (sizeof(T) == sizeof(double)) r = reduce<T>(shared_->of_doubles).Reduce(v, op);
    else r = reduce<T>(shared_->of_floats).Reduce(v, op);
    if (rank == 0) shared_->result = double(r);
    __syncthreads();
    v = T(shared_->result);
    __syncthreads();  // the scratch may be used again
#endif
    return v;
  }

  scratch* shared_;
};

/// One warp: for rows too short for a block. It has neither `sum_before` nor `add`.
class warp_team {
 public:
  static constexpr u32 size = 32;
  static constexpr u32 per_block = block_size / size;
  struct scratch {};
  u32 rank = 0, index = 0, count = 1;

  __device__ explicit warp_team(scratch* = nullptr)
      : rank(threadIdx.x % size), index(blockIdx.x * per_block + threadIdx.x / size), count(gridDim.x * per_block) {}

  FL_HD void wait() const {
#ifdef __CUDA_ARCH__
    __syncwarp();
#endif
  }
  FL_HD float sum(float v) const { return reduced(v, detail::plus{}); }
  FL_HD double sum(double v) const { return reduced(v, detail::plus{}); }
  FL_HD float largest(float v) const { return reduced(v, detail::larger{}); }
  FL_HD bool any(bool v) const {
#ifdef __CUDA_ARCH__
    return __any_sync(~0u, v);
#else
    return v;
#endif
  }

 private:
  // Partners compute the same sum, since a + b is b + a: all members get the same bits.
  template <class T, class Op>
  FL_HD T reduced(T v, [[maybe_unused]] Op op) const {
#ifdef __CUDA_ARCH__
    for (int distance = int(size) / 2; distance > 0; distance /= 2) v = op(v, __shfl_xor_sync(~0u, v, distance));
#endif
    return v;
  }
};

}  // namespace fusionllm::inline v0
