// SPDX-License-Identifier: Apache-2.0
// Rotary positions need a time.
// expect: shape_mismatch<
// expect: rotary_op
// expect g++: shape<-1, 4>
// expect clang++: shape<-1, 4>
// expect nvcc: shape<-1L, 4L>
// expect: rank_of<3>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::reshape<fl::batch, 1, 4> | fl::rotary<4>;
#else
    return x | fl::rotary<4>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
