// SPDX-License-Identifier: Apache-2.0
// The groups of a convolution divide the channels of its input.
// expect: shape_mismatch<
// expect: convolution_op
// expect g++: shape<-1, 6, 8, 8>
// expect clang++: shape<-1, 6, 8, 8>
// expect nvcc: shape<-1L, 6L, 8L, 8L>
// expect g++: channels_divisible_by<4>
// expect clang++: channels_divisible_by<4>
// expect nvcc: channels_divisible_by<4L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
#ifdef POSITIVE
    auto x = fl::input<fl::real, fl::batch, 8, 8, 8>(g, "x");
#else
    auto x = fl::input<fl::real, fl::batch, 6, 8, 8>(g, "x");
#endif
    return x | fl::convolution<8, fl::window{.kernel = 3}, 4>;
  }
};

constexpr int nodes = fl::graph_of<model>().size();
