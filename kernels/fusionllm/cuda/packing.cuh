// SPDX-License-Identifier: Apache-2.0
// Packing on the GPU: the selection of whole tensors by CUB (top_k.cuh), everything else by our bodies.
#pragma once

#include "launch.cuh"
#include "packing.hpp"
#include "top_k.cuh"

namespace fusionllm::inline v0 {

namespace detail {

class gpu_packing final : public team_packing<gpu_launch> {
 public:
  explicit gpu_packing(cuda::context& c) : team_packing(c, c), non_finite_(c, sizeof(u32)) {}

  void select(const float* x, i64 n, i64 k, u32* positions, void* workspace) override {
    context_.top_k(x, n, k, positions, nullptr, non_finite_.as<u32>(), workspace);
  }
  u64 select_bytes(i64 n, i64 k) override { return context_.top_k_workspace(n, k); }

 private:
  device_array non_finite_;  ///< who sends has searched the tensor already
};

}  // namespace detail

inline device_packing* cuda::context::packing() { return &part<detail::gpu_packing>(); }

}  // namespace fusionllm::inline v0
