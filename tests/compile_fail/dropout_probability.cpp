// SPDX-License-Identifier: Apache-2.0
// A probability of 1 leaves nothing.
// expect: dropout(p) needs 0 <= p < 1
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::dropout(0.9);
#else
    return x | fl::dropout(1.0);
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
