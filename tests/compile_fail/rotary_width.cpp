// SPDX-License-Identifier: Apache-2.0
// Heads of this width fill the features.
// expect: shape_mismatch<
// expect: rotary_op
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
// expect g++: last_extent_divisible_by<6>
// expect clang++: last_extent_divisible_by<6>
// expect nvcc: last_extent_divisible_by<6L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::rotary<2>;
#else
    return x | fl::rotary<6>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
