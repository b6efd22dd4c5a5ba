// SPDX-License-Identifier: Apache-2.0
// What is concatenated has one rank.
// expect: shape_mismatch<
// expect: concatenate_op
// expect g++: shape<-1, -2, 2, 2>
// expect clang++: shape<-1, -2, 2, 2>
// expect nvcc: shape<-1L, -2L, 2L, 2L>
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::concatenate(x, x);
#else
    return fl::concatenate(x, x | fl::reshape<fl::batch, fl::time, 2, 2>);
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
