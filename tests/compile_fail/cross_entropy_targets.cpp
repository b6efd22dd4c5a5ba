// SPDX-License-Identifier: Apache-2.0
// Targets have the shape of the logits but for the classes.
// expect: shape_mismatch<
// expect: cross_entropy_op
// expect g++: shape<-1>
// expect clang++: shape<-1>
// expect nvcc: shape<-1L>
// expect g++: shape<-1, -2, 4>
// expect clang++: shape<-1, -2, 4>
// expect nvcc: shape<-1L, -2L, 4L>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::cross_entropy(x, fl::input<fl::i32, fl::batch, fl::time>(g, "targets"));
#else
    return fl::cross_entropy(x, fl::input<fl::i32, fl::batch>(g, "targets"));
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
