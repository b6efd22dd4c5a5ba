// SPDX-License-Identifier: Apache-2.0
// Inputs have names of their own.
// expect: two inputs of the model have the same name
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x + fl::input<fl::real, fl::batch, fl::time, 4>(g, "y");
#else
    return x + fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
