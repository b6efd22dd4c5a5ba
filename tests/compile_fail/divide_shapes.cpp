// SPDX-License-Identifier: Apache-2.0
// Dividend and divisor have one shape.
// expect: shape_mismatch<
// expect: divide_op
// expect g++: shape<-1, -2, 5>
// expect clang++: shape<-1, -2, 5>
// expect nvcc: shape<-1L, -2L, 5L>
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x / (x | fl::linear<4>);
#else
    return x / (x | fl::linear<5>);
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
