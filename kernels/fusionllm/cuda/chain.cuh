// SPDX-License-Identifier: Apache-2.0
// Fused chains and single element-wise operators on the GPU: one kernel for each distinct chain, of function pointers
// that are known at compile time and so are inlined.
#pragma once

#include "block_team.cuh"
#include "chain.hpp"
#include "context.cuh"

namespace fusionllm::inline v0 {

template <class Body>
__global__ void __launch_bounds__(block_size) chain_forward(const __grid_constant__ typename Body::arguments a) {
  Body::forward(block_team(), a);
}
template <class Body>
__global__ void __launch_bounds__(block_size) chain_backward(const __grid_constant__ typename Body::arguments a) {
  Body::backward(block_team(), a);
}

/// fl::cuda, for every type of activations.
template <class Device>
concept gpu_device = std::is_same_v<typename Device::context, cuda::context>;

template <gpu_device Device, class... Links>
struct chain_kernel<Device, Links...> {
  using body = chain_body<typename Device::real, Links...>;
  static constexpr bool adds_partial = true;

  static void forward(cuda::context& c, const kernel_args& a) {
    const typename body::arguments arguments(a);
    if (arguments.count == 0) return;
    const cudaStream_t stream = c.stream();
    chain_forward<body><<<blocks_for(arguments.quads(), block_size, c.blocks()), block_size, 0, stream>>>(arguments);
    check(cudaGetLastError(), "launch the forward kernel of a chain");
  }
  static void backward_input(cuda::context& c, const kernel_args& a) {
    const typename body::arguments arguments(a);
    if (arguments.count == 0) return;
    const cudaStream_t stream = c.stream();
    chain_backward<body><<<blocks_for(arguments.quads(), block_size, c.blocks()), block_size, 0, stream>>>(arguments);
    check(cudaGetLastError(), "launch the backward kernel of a chain");
  }
};

/// An operator without a kernel here has none of the functions: its table entry is null.
template <class Op, gpu_device Device>
struct kernel<Op, Device> {};

template <class Op, gpu_device Device>
  requires Op::elementwise
struct kernel<Op, Device>
    : chain_kernel<Device, chain_link_of<scalar_real<typename Device::real>,
                                         &detail::scalar_of<Op, scalar_real<typename Device::real>>, true,
                                         Op::random>> {};

}  // namespace fusionllm::inline v0
