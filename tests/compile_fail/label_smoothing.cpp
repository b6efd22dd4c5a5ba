// SPDX-License-Identifier: Apache-2.0
// Smoothing leaves something to the target.
// expect: label smoothing 0 <= s < 1
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
    auto t = fl::input<fl::i32, fl::batch, fl::time>(g, "t");
#ifdef POSITIVE
    return fl::cross_entropy(x, t, -100, 0.1);
#else
    return fl::cross_entropy(x, t, -100, 1.0);
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
