// SPDX-License-Identifier: Apache-2.0
// The features that are normalized are known at compile time.
// expect: shape_mismatch<
// expect: rms_norm_op
// expect g++: shape<-1, -2>
// expect clang++: shape<-1, -2>
// expect nvcc: shape<-1L, -2L>
// expect: fixed_last_extent
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
#ifdef POSITIVE
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::rms_norm;
#else
    return fl::input<fl::real, fl::batch, fl::time>(g, "x") | fl::rms_norm;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
