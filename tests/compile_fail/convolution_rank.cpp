// SPDX-License-Identifier: Apache-2.0
// Convolution is for (batch, channels, height, width).
// expect: shape_mismatch<
// expect: convolution_op
// expect g++: shape<-1, 4>
// expect clang++: shape<-1, 4>
// expect nvcc: shape<-1L, 4L>
// expect: batch_of_images
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
#ifdef POSITIVE
    auto x = fl::input<fl::real, fl::batch, 4, 8, 8>(g, "x");
#else
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
#endif
    return x | fl::convolution<8, fl::window{.kernel = 3, .padding = 1}>;
  }
};

constexpr int nodes = fl::graph_of<model>().size();
