// SPDX-License-Identifier: Apache-2.0
// Predictions and targets have one shape.
// expect: shape_mismatch<
// expect: mean_squared_error_op
// expect g++: shape<-1, -2, 3>
// expect clang++: shape<-1, -2, 3>
// expect nvcc: shape<-1L, -2L, 3L>
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::mean_squared_error(x, fl::input<fl::real, fl::batch, fl::time, 4>(g, "y"));
#else
    return fl::mean_squared_error(x, fl::input<fl::real, fl::batch, fl::time, 3>(g, "y"));
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
