// SPDX-License-Identifier: Apache-2.0
// The window of a pool fits on the padded image.
// expect: shape_mismatch<
// expect: max_pool_op
// expect g++: shape<-1, 4, 1, 8>
// expect clang++: shape<-1, 4, 1, 8>
// expect nvcc: shape<-1L, 4L, 1L, 8L>
// expect g++: image_of_at_least<2>
// expect clang++: image_of_at_least<2>
// expect nvcc: image_of_at_least<2L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
#ifdef POSITIVE
    auto x = fl::input<fl::real, fl::batch, 4, 2, 8>(g, "x");
#else
    auto x = fl::input<fl::real, fl::batch, 4, 1, 8>(g, "x");
#endif
    return x | fl::max_pool<fl::window{.kernel = 2, .stride = 2}>;
  }
};

constexpr int nodes = fl::graph_of<model>().size();
