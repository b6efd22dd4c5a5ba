// SPDX-License-Identifier: Apache-2.0
// A device for tests: host memory, and the bodies of the CUDA kernels run by teams of one. What it computes is what the
// GPU's own kernels compute; where fl::cuda calls a library, it takes plain loops.
#pragma once

#include <fusionllm/device/reference.hpp>

#include "chain.hpp"
#include "column_sum.hpp"

namespace fusionllm::inline v0 {

struct host_team_device {
  using real = float;
  static constexpr std::string_view name = "host_team";
  static constexpr bool host = true;
  static constexpr u32 teams = 3;
  struct context : device_context {};
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

template <>
struct kernel<linear_op, host_team_device> : plain_kernel<linear_op, float> {
  static void backward_weight(device_context& c, const kernel_args& a) {
    kernel_args weight = a;
    weight.d_param[1] = {};
    plain_kernel<linear_op, float>::backward_weight(c, weight);
    float shared[1];
    for (u32 i = 0; a.d_param[1] && i < host_team_device::teams; ++i)
      column_sum(host_team{i, host_team_device::teams}, a.d_out.as<const float>(), a.d_out.dims.rows(),
                 a.d_out.dims.last(), a.d_param[1].as<float>(), shared);
  }
};

template <class Op>
constexpr const kernel_table* host_team_device::kernels() {
  if constexpr (Op::elementwise || std::is_same_v<Op, linear_op>) return &kernel_table_of<Op, host_team_device>;
  else return nullptr;
}

}  // namespace fusionllm::inline v0
