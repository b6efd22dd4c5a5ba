// SPDX-License-Identifier: Apache-2.0
// Another shape for the same numbers.
#pragma once

#include <cstring>

#include "../../ops/flatten.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

template <class T>
struct plain_kernel<flatten_op, T> {
  static void forward(device_context&, const kernel_args& a) {
    if (a.out.data != a.in[0].data) std::memcpy(a.out.data, a.in[0].data, std::size_t(a.out.count()) * sizeof(T));
  }
  static void backward_input(device_context&, const kernel_args& a) {
    if (a.d_in[0] && a.d_in[0].data != a.d_out.data)
      std::memcpy(a.d_in[0].data, a.d_out.data, std::size_t(a.d_out.count()) * sizeof(T));
  }
};

}  // namespace fusionllm::inline v0
