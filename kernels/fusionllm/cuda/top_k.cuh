// SPDX-License-Identifier: Apache-2.0
// Exact top-k on the GPU, bit for bit the selection that the CPU makes: the k-th largest key (threshold.cuh), what each
// tile keeps, the sums over the tiles before (cub::DeviceScan), and the positions, ascending.
#pragma once

#include <cub/device/device_scan.cuh>

#include "threshold.cuh"

namespace fusionllm::inline v0 {

template <class Team>
__global__ void __launch_bounds__(block_size)
    count_tile_kernel(const float* x, i64 n, selection_state* state, u64* sums) {
  __shared__ typename Team::scratch scratch;
  count_tile(Team(&scratch), x, n, *state, sums);
}

template <class Team>
__global__ void __launch_bounds__(block_size)
    keep_tile_kernel(const float* x, i64 n, i64 k, const selection_state* state, const u64* sums, u32* positions,
                     float* values) {
  __shared__ typename Team::scratch scratch;
  keep_tile(Team(&scratch), x, n, k, *state, sums, positions, values);
}

namespace detail {

/// Where things lie in the workspace of one selection.
struct top_k_layout {
  static u64 rounded(u64 bytes) { return (bytes + 255) / 256 * 256; }
  static u64 scan_bytes(i64 n) {
    std::size_t size = 0;
    check(cub::DeviceScan::ExclusiveSum(nullptr, size, static_cast<u64*>(nullptr), static_cast<u64*>(nullptr),
                                        tiles_of(n, block_size) + 1),
          "ask cub::DeviceScan for its scratch memory");
    return size;
  }
  u64 state = 0, sums = 256, scratch, bytes;
  top_k_layout(i64 n, i64 k) {
    scratch = sums + rounded((u64(tiles_of(n, block_size)) + 1) * sizeof(u64));
    const u64 scan = scan_bytes(n), find = threshold::bytes(n, k);
    bytes = scratch + rounded(scan > find ? scan : find);
  }
};

}  // namespace detail

inline u64 cuda::context::top_k_workspace(i64 n, i64 k) {
  stream();
  return detail::top_k_layout(n, k).bytes;
}

inline void cuda::context::top_k(const float* x, i64 n, i64 k, u32* positions, float* values, u32* non_finite,
                                 void* workspace) {
  if (k < 0 || k > n || n >= i64(1) << 32)
    fail(errc::internal, "top_k of ", k, " among ", n, ": expected 0 <= k <= n < 2^32");
  if (k == 0) return zero(non_finite, sizeof(u32));
  const cudaStream_t s = stream();
  const detail::top_k_layout at(n, k);
  char* memory = static_cast<char*>(workspace);
  auto* state = reinterpret_cast<selection_state*>(memory + at.state);
  auto* sums = reinterpret_cast<u64*>(memory + at.sums);
  const u32 tiles = tiles_of(n, block_size);
  threshold::find(*this, x, n, k, state, memory + at.scratch);
  count_tile_kernel<block_team><<<tiles, block_size, 0, s>>>(x, n, state, sums);
  zero(sums + tiles, sizeof(u64));
  std::size_t size = detail::top_k_layout::scan_bytes(n);
  check(cub::DeviceScan::ExclusiveSum(memory + at.scratch, size, sums, sums, tiles + 1, s), "sum by cub::DeviceScan");
  keep_tile_kernel<block_team><<<tiles, block_size, 0, s>>>(x, n, k, state, sums, positions, values);
  check(cudaMemcpyAsync(non_finite, &state->non_finite, sizeof(u32), cudaMemcpyDeviceToDevice, s), "copy a flag");
  check(cudaGetLastError(), "launch a selection");
}

}  // namespace fusionllm::inline v0
