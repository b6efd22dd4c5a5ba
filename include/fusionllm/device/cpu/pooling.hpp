// SPDX-License-Identifier: Apache-2.0
// Pooling: planes over the team; flatten.
#pragma once

#include "../reference/average_pool.hpp"
#include "../reference/flatten.hpp"
#include "../reference/max_pool.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

namespace detail {
struct team_planes {
  cpu_context& c;
  template <class F>
  void operator()(i64 planes, F&& f) const {
    c.team.split(planes, 1, f);
  }
};

template <class Op>
struct cpu_pool {
  static void forward(cpu_context& c, const kernel_args& a) { plain_kernel<Op, float>::forward(a, team_planes{c}); }
  static void backward_input(cpu_context& c, const kernel_args& a) {
    plain_kernel<Op, float>::backward_input(a, team_planes{c});
  }
};
}  // namespace detail

template <>
struct kernel<max_pool_op, cpu> : detail::cpu_pool<max_pool_op> {};
template <>
struct kernel<average_pool_op, cpu> : detail::cpu_pool<average_pool_op> {};
template <>
struct kernel<global_average_pool_op, cpu> : plain_kernel<global_average_pool_op, float> {};
template <>
struct kernel<flatten_op, cpu> : plain_kernel<flatten_op, float> {};

}  // namespace fusionllm::inline v0
