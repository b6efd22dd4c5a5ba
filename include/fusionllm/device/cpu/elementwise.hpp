// SPDX-License-Identifier: Apache-2.0
// Element-wise operators that are worth a vector loop of their own.
#pragma once

#include "../../ops/add.hpp"
#include "../../ops/gelu.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<gelu_op, cpu> {
  static constexpr bool adds_partial = true;
  static void forward(cpu_context& c, const kernel_args& a) {
    const float* x = a.in[0].as<const float>();
    float* y = a.out.as<float>();
    c.team.split(a.out.count(), 1024, [&](i64 begin, i64 end) { c.loops.gelu(x + begin, y + begin, end - begin); });
  }
  static void backward_input(cpu_context& c, const kernel_args& a) {
    const float *x = a.in[0].as<const float>(), *d = a.d_out.as<const float>(), *p = a.d_partial[0].as<const float>();
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    c.team.split(a.d_out.count(), 1024, [&](i64 begin, i64 end) {
      c.loops.gelu_backward(x + begin, d + begin, p ? p + begin : nullptr, dx + begin, end - begin);
    });
  }
};

}  // namespace fusionllm::inline v0
