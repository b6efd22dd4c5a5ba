// SPDX-License-Identifier: Apache-2.0
// Each head of keys is read by as many heads of queries.
// expect: the heads of keys and values divide the heads of queries
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::causal_attention<4, 2>;
#else
    return x | fl::causal_attention<4, 3>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
