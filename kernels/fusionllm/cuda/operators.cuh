// SPDX-License-Identifier: Apache-2.0
// The kernels of our own as kernels of fl::cuda. A file that has a library's instead specializes `kernel<Op, cuda>`
// fully.
#pragma once

#include "chain.cuh"
#include "launch.cuh"
#include "operators.hpp"

namespace fusionllm::inline v0 {

template <class Op>
  requires(!Op::elementwise && has_team_kernel<Op, cuda::real, gpu_launch>)
struct kernel<Op, cuda> : team_kernel<Op, cuda::real, gpu_launch> {};

}  // namespace fusionllm::inline v0
