// SPDX-License-Identifier: Apache-2.0
// Launches bodies on a GPU: one kernel a body and team. No shared memory beyond what every card has (48 KiB, static).
#pragma once

#include "block_team.cuh"
#include "context.cuh"
#include "team_kernel.hpp"
#include "tensor_part.cuh"

namespace fusionllm::inline v0 {

template <class Team, class Body>
__global__ void __launch_bounds__(block_size) body_kernel(const __grid_constant__ Body body) {
  __shared__ typename Team::scratch scratch;
  __shared__ shared_memory_of<Body, Team> shared;
  run_body(body, Team(&scratch), shared);
}

/// The same for bodies that say `many_registers`: ptxas, left alone, would rather have more blocks at once and spill.
template <class Team, class Body>
__global__ void __launch_bounds__(block_size, 1) large_body_kernel(const __grid_constant__ Body body) {
  __shared__ typename Team::scratch scratch;
  __shared__ shared_memory_of<Body, Team> shared;
  run_body(body, Team(&scratch), shared);
}

struct gpu_launch {
  using context = cuda::context;

  template <class Body>
  static void blocks(context& c, i64 wanted, const Body& body, const char* what) {
    launch<block_team>(c, wanted, 1, body, what);
  }
  template <class Body>
  static void rows(context& c, i64 rows, i64 length, const Body& body, const char* what) {
    if (length <= warp_row) launch<warp_team>(c, rows, warp_team::per_block, body, what);
    else launch<block_team>(c, rows, 1, body, what);
  }
  template <class Body>
  static void items(context& c, i64 items, const Body& body, const char* what) {
    launch<block_team>(c, items, block_size, body, what);
  }

 private:
  template <class Team, class Body>
  static void launch(context& c, i64 items, i64 per_block, const Body& body, const char* what) {
    static_assert(sizeof(typename Team::scratch) + sizeof(shared_memory_of<Body, Team>) <= 48 * 1024,
                  "a body shares at most 48 KiB");
    static_assert(Team::per_block == 1 || std::is_same_v<shared_memory_of<Body, Team>, nothing_shared>,
                  "the warps of a block share nothing");
    if (items <= 0) return;
    const cudaStream_t stream = c.stream();
    const u32 count = blocks_for(items, per_block, c.blocks());
    if constexpr (requires { Body::many_registers; }) large_body_kernel<Team><<<count, block_size, 0, stream>>>(body);
    else body_kernel<Team><<<count, block_size, 0, stream>>>(body);
    check(cudaGetLastError(), what);
  }
};

}  // namespace fusionllm::inline v0
