// SPDX-License-Identifier: Apache-2.0
// Pools are for (batch, channels, height, width).
// expect: shape_mismatch<
// expect: global_average_pool_op
// expect g++: shape<-1, 4, 8>
// expect clang++: shape<-1, 4, 8>
// expect nvcc: shape<-1L, 4L, 8L>
// expect: batch_of_images
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
#ifdef POSITIVE
    auto x = fl::input<fl::real, fl::batch, 4, 8, 8>(g, "x");
#else
    auto x = fl::input<fl::real, fl::batch, 4, 8>(g, "x");
#endif
    return x | fl::global_average_pool;
  }
};

constexpr int nodes = fl::graph_of<model>().size();
