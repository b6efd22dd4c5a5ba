// SPDX-License-Identifier: Apache-2.0
// What nothing reads is a mistake.
// expect: a value or parameter of the model is neither used by its result nor named as an output
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    auto y = x | fl::linear<4>;
    return y | fl::linear<2>;
#else
    auto y = x | fl::linear<4>;
    return (void)y, x | fl::linear<2>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
