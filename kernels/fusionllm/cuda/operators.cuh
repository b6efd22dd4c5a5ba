// SPDX-License-Identifier: Apache-2.0
// The kernels of our own as kernels of fl::cuda. Where a library computes instead, `kernel<Op, cuda>` is specialized
// fully.
#pragma once

#include "chain.cuh"
#include "launch.cuh"
#include "operators.hpp"

namespace fusionllm::inline v0 {

template <class Op, gpu_device Device>
  requires(!Op::elementwise && has_team_kernel<Op, typename Device::real, gpu_launch>)
struct kernel<Op, Device> : team_kernel<Op, typename Device::real, gpu_launch> {};

}  // namespace fusionllm::inline v0
