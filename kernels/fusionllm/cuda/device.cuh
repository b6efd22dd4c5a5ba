// SPDX-License-Identifier: Apache-2.0
// What a user's .cu file includes. It includes the model too, and asks for the model's one symbol:
//
//   template const fusionllm::device_side& fusionllm::device_tables<my_model, fusionllm::cuda>();
//
// Own operators get their GPU kernels by specializing `kernel<my_op, cuda>` before that line.
#pragma once

#include <fusionllm/device/table.hpp>

#include "chain.cuh"
#include "linear.cuh"
#include "top_k.cuh"

namespace fusionllm::inline v0 {

template <class Op>
constexpr const kernel_table* cuda::kernels() {
  if constexpr (requires(context& c, const kernel_args& a) { kernel<Op, cuda>::forward(c, a); })
    return &kernel_table_of<Op, cuda>;
  else return nullptr;
}

template <class Model, class Device>
const device_side& device_tables() {
  static_assert(std::is_same_v<Device, cuda>, "this .cu file defines the tables of fusionllm::cuda");
  static constexpr device_side side{
      fingerprint(graph_of<Model>()), detail::device_table_of<Model, cuda>,
      [] {
        int count = 0;
        if (cudaGetDeviceCount(&count) != cudaSuccess) {
          cudaGetLastError();  // no driver is no error: there are 0 GPUs
          count = 0;
        }
        return count;
      },
      [](int ordinal) -> std::unique_ptr<cuda_context> { return std::make_unique<cuda::context>(ordinal); }};
  return side;
}

}  // namespace fusionllm::inline v0
