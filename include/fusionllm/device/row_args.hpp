// SPDX-License-Identifier: Apache-2.0
// What kernels that work on each row of the last extent by itself (norms, softmax) have of their arguments.
#pragma once

#include "kernel.hpp"

namespace fusionllm::inline v0 {

/// Typed pointers, null where a tensor is absent; `rows` of `n` elements each.
template <class T>
struct row_args {
  i64 rows, n;
  const T *x, *weight, *bias;
  T* y;          ///< forward writes it, backward reads it where the operator saves it
  T* saved;      ///< null in inference
  const T* dy;
  const T* partial;
  T* dx;         ///< null: not wanted

  explicit row_args(const kernel_args& a)
      : rows((a.d_out ? a.d_out : a.out).dims.rows()),
        n((a.d_out ? a.d_out : a.out).dims.last()),
        x(a.in[0].template as<const T>()),
        weight(a.param[0].template as<const T>()),
        bias(a.param[1].template as<const T>()),
        y(a.out.template as<T>()),
        saved(static_cast<T*>(a.saved)),
        dy(a.d_out.template as<const T>()),
        partial(a.d_partial[0].template as<const T>()),
        dx(a.d_in[0].template as<T>()) {}
};

}  // namespace fusionllm::inline v0
