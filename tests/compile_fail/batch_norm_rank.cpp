// SPDX-License-Identifier: Apache-2.0
// Batch norm is for (batch, channels) and (batch, channels, height, width).
// expect: shape_mismatch<
// expect: batch_norm_op
// expect g++: shape<-1, 4, 5>
// expect clang++: shape<-1, 4, 5>
// expect nvcc: shape<-1L, 4L, 5L>
// expect: batch_and_fixed_channels
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
#ifdef POSITIVE
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
#else
    auto x = fl::input<fl::real, fl::batch, 4, 5>(g, "x");
#endif
    return x | fl::batch_norm;
  }
};

constexpr int nodes = fl::graph_of<model>().size();
