// SPDX-License-Identifier: Apache-2.0
// A device for tests: host memory, and the bodies of the CUDA kernels run by teams of one. What it computes is what the
// GPU's own kernels compute; where fl::cuda calls a library, it takes plain loops.
//
// How an operator gets its kernels. One header (softmax.hpp) has the bodies, and in `team_kernel<Op, T, Launch>` what
// launches them; operators.hpp includes it. From there both devices find it: fl::cuda through gpu_launch (operators.cuh,
// which device.cuh includes), this one through host_launch. An operator that a library computes on the GPU is instead
//
//   template <> struct kernel<convolution_op, cuda> { static void forward(cuda::context&, const kernel_args&); ... };
//
// in a .cuh that device.cuh includes where the build has that library; handles and plans are a part of the context
// (context.cuh). A user's own operator does one of the two before the line that asks for the table. An operator with
// neither has a null entry in the table, and a plan that wants it on a GPU is refused by name.
#pragma once

#include <fusionllm/device/reference.hpp>

#include "chain.hpp"
#include "linear.hpp"
#include "operators.hpp"

namespace fusionllm::inline v0 {

struct host_team_device {
  using real = float;
  static constexpr std::string_view name = "host_team";
  static constexpr bool host = true;
  static constexpr u32 teams = 3;
  struct context : device_context {
    explicit context(int = 1) {}
  };
  template <class Op>
  static constexpr const kernel_table* kernels();
};

template <class... Links>
struct chain_kernel<host_team_device, Links...> {
  using body = chain_body<float, Links...>;
  static constexpr bool adds_partial = true;

  static void forward(device_context&, const kernel_args& a) {
    const typename body::arguments arguments(a);
    for (u32 i = 0; i < host_team_device::teams; ++i) body::forward(host_team{i, host_team_device::teams}, arguments);
  }
  static void backward_input(device_context&, const kernel_args& a) {
    const typename body::arguments arguments(a);
    for (u32 i = 0; i < host_team_device::teams; ++i) body::backward(host_team{i, host_team_device::teams}, arguments);
  }
};

template <class Op>
  requires(!Op::elementwise && has_team_kernel<Op, float, host_launch>)
struct kernel<Op, host_team_device> : team_kernel<Op, float, host_launch> {};

/// Operators that only libraries compute on the GPU.
template <class Op>
  requires(!Op::elementwise && !has_team_kernel<Op, float, host_launch> && has_plain_kernel<Op, float>)
struct kernel<Op, host_team_device> : plain_kernel<Op, float> {};

template <class Op>
constexpr const kernel_table* host_team_device::kernels() {
  return &kernel_table_of<Op, host_team_device>;
}

}  // namespace fusionllm::inline v0
