// SPDX-License-Identifier: Apache-2.0
// Tokens are (batch, time).
// expect: shape_mismatch<
// expect: embedding_op
// expect g++: shape<-1>
// expect clang++: shape<-1>
// expect nvcc: shape<-1L>
// expect g++: rank_of<2>
// expect clang++: rank_of<2>
// expect nvcc: rank_of<2>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::embedding(fl::input<fl::i32, fl::batch, fl::time>(g, "tokens"), fl::parameter<9, 4>(g, "table"));
#else
    return fl::embedding(fl::input<fl::i32, fl::batch>(g, "tokens"), fl::parameter<9, 4>(g, "table"));
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
