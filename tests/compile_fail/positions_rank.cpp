// SPDX-License-Identifier: Apache-2.0
// Positions are for (batch, time, features).
// expect: shape_mismatch<
// expect: positions_op
// expect g++: shape<-1, 4>
// expect clang++: shape<-1, 4>
// expect nvcc: shape<-1L, 4L>
// expect g++: rank_of<3>
// expect clang++: rank_of<3>
// expect nvcc: rank_of<3>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::positions<9>;
#else
    return fl::input<fl::real, fl::batch, 4>(g, "y") | fl::positions<9>;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
