// SPDX-License-Identifier: Apache-2.0
// Axes are counted from 0.
// expect: shape_mismatch<
// expect: transpose_op
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
// expect: shape_with_axis<3>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::transpose<1, 2>;
#else
    return x | fl::transpose<1, 3>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
