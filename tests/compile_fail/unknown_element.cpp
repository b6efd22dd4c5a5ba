// SPDX-License-Identifier: Apache-2.0
// Models say real or i32; how wide a real is, a device says.
// expect: the elements of a model's tensors are fusionllm::real or fusionllm::i32
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return fl::input<fl::real, fl::batch, 4>(g, "y"), x;
#else
    return fl::input<double, fl::batch, 4>(g, "y"), x;
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
