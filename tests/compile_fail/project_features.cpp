// SPDX-License-Identifier: Apache-2.0
// A projection's table has as many features as its input.
// expect: shape_mismatch<
// expect: project_op
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
// expect g++: shape<9, 5>
// expect clang++: shape<9, 5>
// expect nvcc: shape<9L, 5L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::project(x, fl::parameter<9, 4>(g, "table"));
#else
    return fl::project(x, fl::parameter<9, 5>(g, "table"));
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
