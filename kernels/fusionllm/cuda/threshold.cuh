// SPDX-License-Identifier: Apache-2.0
// The k-th largest key of an input, in device memory, without waiting for the host: by cub::DeviceTopK where the CCCL
// has it (3.2), else by our radix selection.
#pragma once

#include <cuda/std/version>

#include "block_team.cuh"
#include "context.cuh"
#include "select.hpp"

#if CCCL_VERSION >= 3002000
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_topk.cuh>
#include <cuda/iterator>
#endif

namespace fusionllm::inline v0 {

template <class State>
__global__ void begin_selection(State* state, u32 k) {
  *state = {0, k, 0};
}

template <class Team>
__global__ void __launch_bounds__(block_size)
    count_digits_kernel(const float* x, i64 n, const selection_state* state, int pass, u32* counts) {
  __shared__ u32 local[digit_values];
  count_digits(Team(), x, n, *state, pass, local, counts);
}

template <class Team>
__global__ void __launch_bounds__(block_size) pick_digit_kernel(u32* counts, int pass, selection_state* state) {
  __shared__ typename Team::scratch scratch;
  pick_digit(Team(&scratch), counts, pass, *state);
}

/// Three passes over the input. `memory`: `bytes()`, aligned to 256.
struct radix_threshold {
  static u64 bytes(i64, i64) { return digit_values * sizeof(u32); }
  static void find(cuda::context& c, const float* x, i64 n, i64 k, selection_state* state, void* memory) {
    const cudaStream_t stream = c.stream();
    u32* counts = static_cast<u32*>(memory);
    check(cudaMemsetAsync(counts, 0, digit_values * sizeof(u32), stream), "clear memory");
    begin_selection<<<1, 1, 0, stream>>>(state, u32(k));
    for (int pass = 0; pass < digit_passes; ++pass) {
      count_digits_kernel<block_team>
          <<<blocks_for(n, 16 * block_size, c.blocks()), block_size, 0, stream>>>(x, n, state, pass, counts);
      pick_digit_kernel<block_team><<<1, block_size, 0, stream>>>(counts, pass, state);
    }
    check(cudaGetLastError(), "launch a selection");
  }
};

#if CCCL_VERSION < 3002000
using threshold = radix_threshold;
#else

struct key_of {
  __host__ __device__ u32 operator()(float x) const { return magnitude_key(x); }
};

/// The smallest of the k largest keys, which come without an order.
struct top_k_threshold {
  static u64 bytes(i64 n, i64 k) {
    const u64 top = scratch_top(n, k), smallest = scratch_min(k);
    return keys_bytes(k) + (top > smallest ? top : smallest);
  }
  static void find(cuda::context& c, const float* x, i64 n, i64 k, selection_state* state, void* memory) {
    const cudaStream_t stream = c.stream();
    u32* keys = static_cast<u32*>(memory);
    void* scratch = static_cast<char*>(memory) + keys_bytes(k);
    begin_selection<<<1, 1, 0, stream>>>(state, u32(k));
    std::size_t size = scratch_top(n, k);
    check(largest(scratch, size, x, keys, n, k, stream), "select by cub::DeviceTopK");
    size = scratch_min(k);
    check(cub::DeviceReduce::Min(scratch, size, keys, &state->key, k, stream), "reduce by cub::DeviceReduce");
  }

 private:
  static u64 keys_bytes(i64 k) { return (u64(k) * sizeof(u32) + 255) / 256 * 256; }
  static cudaError_t largest(void* scratch, std::size_t& size, const float* x, u32* keys, i64 n, i64 k,
                             cudaStream_t s) {
    const auto environment = ::cuda::std::execution::env{
        ::cuda::execution::require(::cuda::execution::determinism::not_guaranteed,
                                   ::cuda::execution::output_ordering::unsorted),
        ::cuda::stream_ref{s}};
    return cub::DeviceTopK::MaxKeys(scratch, size, ::cuda::transform_iterator(x, key_of{}), keys, n, k, environment);
  }
  static u64 scratch_top(i64 n, i64 k) {
    std::size_t size = 0;
    check(largest(nullptr, size, nullptr, nullptr, n, k, nullptr), "ask cub::DeviceTopK for its scratch memory");
    return size;
  }
  static u64 scratch_min(i64 k) {
    std::size_t size = 0;
    check(cub::DeviceReduce::Min(nullptr, size, static_cast<const u32*>(nullptr), static_cast<u32*>(nullptr), k),
          "ask cub::DeviceReduce for its scratch memory");
    return size;
  }
};
using threshold = top_k_threshold;
#endif

}  // namespace fusionllm::inline v0
