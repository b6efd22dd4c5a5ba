// SPDX-License-Identifier: Apache-2.0
// What is flattened has fixed extents.
// expect: shape_mismatch<
// expect: flatten_op
// expect g++: shape<-1, -2, 8>
// expect clang++: shape<-1, -2, 8>
// expect nvcc: shape<-1L, -2L, 8L>
// expect: all_but_the_first_fixed
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
#ifdef POSITIVE
    auto x = fl::input<fl::real, fl::batch, 4, 8>(g, "x");
#else
    auto x = fl::input<fl::real, fl::batch, fl::time, 8>(g, "x");
#endif
    return x | fl::flatten;
  }
};

constexpr int nodes = fl::graph_of<model>().size();
