// SPDX-License-Identifier: Apache-2.0
// reshape, transpose, slice and concatenate: plain copies, split over the team.
#pragma once

#include "../reference/rearrange.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<reshape_op, cpu> : plain_kernel<reshape_op, float> {};
template <>
struct kernel<transpose_op, cpu> : plain_kernel<transpose_op, float> {};
template <>
struct kernel<slice_op, cpu> : plain_kernel<slice_op, float> {};
template <>
struct kernel<concatenate_op, cpu> : plain_kernel<concatenate_op, float> {};

}  // namespace fusionllm::inline v0
