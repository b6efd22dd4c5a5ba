// SPDX-License-Identifier: Apache-2.0
// What a user's .cu file includes. It includes the model too, and asks for the model's one symbol:
//
//   template const fusionllm::device_side& fusionllm::device_tables<my_model, fusionllm::cuda>();
//
// Own operators get their GPU kernels by specializing `kernel<my_op, cuda>` or `team_kernel<my_op, T, Launch>` before that
// line: host_team_device.hpp says how.
#pragma once

#include <fusionllm/device/table.hpp>

#include "chain.cuh"
#include "linear.cuh"
#include "operators.cuh"
#include "packing.cuh"
#include "top_k.cuh"
#include "vectors.cuh"

namespace fusionllm::inline v0 {

namespace detail {
template <class Op, class Device>
constexpr const kernel_table* gpu_kernels() {
  if constexpr (requires(cuda::context& c, const kernel_args& a) { kernel<Op, Device>::forward(c, a); })
    return &kernel_table_of<Op, Device>;
  else return nullptr;
}
}  // namespace detail

template <class Op>
constexpr const kernel_table* cuda::kernels() {
  return detail::gpu_kernels<Op, cuda>();
}
template <class Op>
constexpr const kernel_table* cuda_bf16::kernels() {
  return detail::gpu_kernels<Op, cuda_bf16>();
}

namespace detail {

inline int count_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver is no error: there are 0 GPUs
    count = 0;
  }
  return count;
}
template <class Real>
std::unique_ptr<cuda_context> open_gpu(int ordinal, product_precision products) {
  auto gpu = std::make_unique<cuda::context>(ordinal, products);
  if (std::is_same_v<Real, bfloat16> && gpu->capability() < 80)
    fail(errc::resource, gpu->description(), " does not compute in bf16: use the device cuda there, or a card of compute capability 8.0 or newer");
  return gpu;
}

}  // namespace detail

template <class Model, class Device>
const device_side& device_tables() {
  static_assert(std::is_same_v<typename Device::context, cuda::context>,
                "this .cu file defines the tables of fusionllm::cuda or fusionllm::cuda_bf16");
  static constexpr device_side side{fingerprint(graph_of<Model>()), detail::device_table_of<Model, Device>,
                                    &detail::count_gpus, &detail::open_gpu<typename Device::real>,
                                    &gpu_vectors<typename Device::real>};
  return side;
}

}  // namespace fusionllm::inline v0
