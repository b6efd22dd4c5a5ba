// SPDX-License-Identifier: Apache-2.0
// Rotary positions: times over the team, the angles of a time once for all sequences and heads.
#pragma once

#include "../rotation.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<rotary_op, cpu> {
  static void forward(cpu_context& c, const kernel_args& a) {
    turn(c, rotation(a), false, a.in[0].as<const float>(), a.out.as<float>());
  }
  static void backward_input(cpu_context& c, const kernel_args& a) {
    if (a.d_in[0]) turn(c, rotation(*a.op, a.d_out.dims), true, a.d_out.as<const float>(), a.d_in[0].as<float>());
  }

 private:
  static void turn(cpu_context& c, const rotation& r, bool backward, const float* x, float* y) {
    c.each(r.steps, [&](int rank, i64 t) {
      float* cosine = c.scratch(rank, 2 * r.half);
      r.angles(t, backward, cosine, cosine + r.half);
      r.turn(t, cosine, cosine + r.half, x, y);
    });
  }
};

}  // namespace fusionllm::inline v0
