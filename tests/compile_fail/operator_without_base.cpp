// SPDX-License-Identifier: Apache-2.0
// A user's operator derives its defaults from operator_base.
// expect: an operator derives from fusionllm::operator_base
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

#ifdef POSITIVE
struct swish_op : fl::operator_base {
#else
struct swish_op {
#endif
  static constexpr std::string_view name = "swish";
};
struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    return fl::record<swish_op, fl::real, fl::shape<fl::batch, 4>>(x.g, fl::from(x.id));
  }
};

constexpr int nodes = fl::graph_of<model>().size();
