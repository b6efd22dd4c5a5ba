// SPDX-License-Identifier: Apache-2.0
// A user's operator has a name.
// expect: an operator has a static constexpr std::string_view name
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct swish_op : fl::operator_base {
#ifdef POSITIVE
  static constexpr std::string_view name = "swish";
#endif
};
struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    return fl::record<swish_op, fl::real, fl::shape<fl::batch, 4>>(x.g, fl::from(x.id));
  }
};

constexpr int nodes = fl::graph_of<model>().size();
