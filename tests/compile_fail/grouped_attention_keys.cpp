// SPDX-License-Identifier: Apache-2.0
// Keys have the width of one head for each of their heads.
// expect: shape_mismatch<
// expect: attention_op
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
// expect g++: shape<-1, -2, 2>
// expect clang++: shape<-1, -2, 2>
// expect nvcc: shape<-1L, -2L, 2L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::grouped_attention<2, 1>(x, x | fl::linear<2>, x | fl::linear<2>);
#else
    return fl::grouped_attention<2, 1>(x, x, x | fl::linear<2>);
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
