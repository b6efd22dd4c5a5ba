// SPDX-License-Identifier: Apache-2.0
// Where the plain loops of the library's operators are found. They use no device's context, so that any host device
// may take them where it has nothing better: `struct kernel<embedding_op, D> : plain_kernel<embedding_op, T>`.
#pragma once

#include "../kernel.hpp"

namespace fusionllm::inline v0 {

/// Specialized for each of the library's operators that is not element-wise; T is float or double.
template <class Op, class T>
struct plain_kernel;

template <class Op, class T>
concept has_plain_kernel = requires {
  sizeof(plain_kernel<Op, T>);
};

}  // namespace fusionllm::inline v0
