// SPDX-License-Identifier: Apache-2.0
// The model of the CUDA tests: it is traced by g++ for the host and by nvcc for the GPU. Linear operators with and
// without bias, two fused chains, one single element-wise operator, and a norm and a loss.
#pragma once

#include <fusionllm/ops/ops.hpp>

namespace seam {

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 48>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 21>(g, "y");
    auto h = x | fl::residual(fl::linear<48>.named("a") | fl::gelu | fl::dropout(0.25));  // gelu, dropout, add: fused
    auto gate = h | fl::linear<48>.named("b") | fl::relu;                                 // read twice: not fused
    auto mixed = (gate | fl::layer_norm) * h + gate;                                      // multiply, add: fused
    auto z = fl::output("z", mixed | fl::linear<21>.named("c").without_bias());
    return fl::mean_squared_error(z, y);
  }
};

}  // namespace seam
