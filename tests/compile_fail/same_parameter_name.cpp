// SPDX-License-Identifier: Apache-2.0
// Parameters have names of their own.
// expect: two parameters of the model have the same name: name them or their scopes
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::project(fl::project(x, fl::parameter<4, 4>(g, "v")), fl::parameter<4, 4>(g, "w"));
#else
    return fl::project(fl::project(x, fl::parameter<4, 4>(g, "w")), fl::parameter<4, 4>(g, "w"));
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
