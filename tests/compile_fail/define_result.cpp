// SPDX-License-Identifier: Apache-2.0
// define returns a tensor.
// expect: define(g) returns the loss, or the tensor that the model computes
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::gelu;
#else
    return (void)x, 1;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
