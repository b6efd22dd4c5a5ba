// SPDX-License-Identifier: Apache-2.0
// Products of operators on the GPU go to the context's engine.
#pragma once

#include "context.cuh"
#include "linear.hpp"

namespace fusionllm::inline v0 {

inline void multiply(cuda::context& c, const product& p, const product_operands& x) {
  c.stream();
  c.matmul.run(p, x);
}

}  // namespace fusionllm::inline v0
