// SPDX-License-Identifier: Apache-2.0
// A shape of another number of elements.
// expect: shape_mismatch<
// expect: reshape_op
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
// expect g++: shape<-1, -2, 2, 3>
// expect clang++: shape<-1, -2, 2, 3>
// expect nvcc: shape<-1L, -2L, 2L, 3L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::reshape<fl::batch, fl::time, 2, 2>;
#else
    return x | fl::reshape<fl::batch, fl::time, 2, 3>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
