// SPDX-License-Identifier: Apache-2.0
// A slice ends within the extent.
// expect: shape_mismatch<
// expect: slice_op
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
// expect: fixed_extent_of_at_least<-1
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::slice<-1, 1, 4>();
#else
    return x | fl::slice<-1, 1, 5>();
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
