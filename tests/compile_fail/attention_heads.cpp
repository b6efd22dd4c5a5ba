// SPDX-License-Identifier: Apache-2.0
// Heads divide the features.
// expect: shape_mismatch<
// expect: causal_attention_object<3
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
// expect g++: last_extent_divisible_by<3>
// expect clang++: last_extent_divisible_by<3>
// expect nvcc: last_extent_divisible_by<3L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::causal_attention<2>;
#else
    return x | fl::causal_attention<3>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
