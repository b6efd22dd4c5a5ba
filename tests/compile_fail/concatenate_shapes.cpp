// SPDX-License-Identifier: Apache-2.0
// What is concatenated agrees in all other extents.
// expect: shape_mismatch<
// expect: concatenate_op
// expect g++: shape<-1, -2, 5, 1>
// expect clang++: shape<-1, -2, 5, 1>
// expect nvcc: shape<-1L, -2L, 5L, 1L>
// expect g++: shape<-1, -2, 4, 1>
// expect clang++: shape<-1, -2, 4, 1>
// expect nvcc: shape<-1L, -2L, 4L, 1L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
    auto y = x | fl::reshape<fl::batch, fl::time, 4, 1>;
    auto z = x | fl::linear<5> | fl::reshape<fl::batch, fl::time, 5, 1>;
#ifdef POSITIVE
    return fl::concatenate<2>(y, y, z);
#else
    return fl::concatenate(y, y, z);
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
