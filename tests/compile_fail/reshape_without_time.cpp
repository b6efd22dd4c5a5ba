// SPDX-License-Identifier: Apache-2.0
// A shape that loses the time.
// expect: shape_mismatch<
// expect: reshape_op
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
// expect g++: shape<-1, 4>
// expect clang++: shape<-1, 4>
// expect nvcc: shape<-1L, 4L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::reshape<fl::time, fl::batch, 4>;
#else
    return x | fl::reshape<fl::batch, 4>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
