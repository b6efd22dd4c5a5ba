// SPDX-License-Identifier: Apache-2.0
// Linear works on a fixed extent.
// expect: shape_mismatch<
// expect: linear_op
// expect g++: shape<-1, -2>
// expect clang++: shape<-1, -2>
// expect nvcc: shape<-1L, -2L>
// expect g++: fixed_last_extent
// expect clang++: fixed_last_extent
// expect nvcc: fixed_last_extent
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::linear<4>;
#else
    return fl::input<fl::real, fl::batch, fl::time>(g, "y") | fl::linear<4>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
