// SPDX-License-Identifier: Apache-2.0
// Outputs have names of their own.
// expect: two outputs of the model have the same name
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::output("y", fl::output("z", x | fl::relu) | fl::gelu);
#else
    return fl::output("y", fl::output("y", x | fl::relu) | fl::gelu);
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
