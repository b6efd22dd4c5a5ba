// SPDX-License-Identifier: Apache-2.0
// Rotary positions in plain loops. The angles of one time lie in the workspace.
#pragma once

#include "../rotation.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<rotary_op, T> {
  static u64 workspace_bytes(const op_view& v) { return u64(v.attr.n[0]) * sizeof(T); }

  static void forward(device_context&, const kernel_args& a) {
    turn(a, rotation(a), false, a.in[0].template as<const T>(), a.out.template as<T>());
  }
  static void backward_input(device_context&, const kernel_args& a) {
    if (a.d_in[0])
      turn(a, rotation(*a.op, a.d_out.dims), true, a.d_out.template as<const T>(), a.d_in[0].template as<T>());
  }

 private:
  static void turn(const kernel_args& a, const rotation& r, bool backward, const T* x, T* y) {
    T* cosine = static_cast<T*>(a.workspace);
    T* sine = cosine + r.half;
    for (i64 t = 0; t < r.steps; ++t) {
      r.angles(t, backward, cosine, sine);
      r.turn(t, cosine, sine, x, y);
    }
  }
};

}  // namespace fusionllm::inline v0
