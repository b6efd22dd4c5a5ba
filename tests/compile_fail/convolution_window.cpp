// SPDX-License-Identifier: Apache-2.0
// The window of a convolution fits on the padded image.
// expect: shape_mismatch<
// expect: convolution_op
// expect g++: shape<-1, 4, 2, 8>
// expect clang++: shape<-1, 4, 2, 8>
// expect nvcc: shape<-1L, 4L, 2L, 8L>
// expect g++: image_of_at_least<3>
// expect clang++: image_of_at_least<3>
// expect nvcc: image_of_at_least<3L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
#ifdef POSITIVE
    auto x = fl::input<fl::real, fl::batch, 4, 3, 8>(g, "x");
#else
    auto x = fl::input<fl::real, fl::batch, 4, 2, 8>(g, "x");
#endif
    return x | fl::convolution<8, fl::window{.kernel = 3, .padding = 1, .dilation = 2}>;
  }
};

constexpr int nodes = fl::graph_of<model>().size();
