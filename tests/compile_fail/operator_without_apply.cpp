// SPDX-License-Identifier: Apache-2.0
// An element-wise operator computes one element.
// expect: an elementwise operator has a static T apply<T>(scalar_part, T x, T y, T d, const scalar_args&)
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct negate_op : fl::operator_base {
  static constexpr std::string_view name = "negate";
  static constexpr bool elementwise = true;
#ifdef POSITIVE
  template <class T>
  FL_HD static constexpr T apply(fl::scalar_part part, T x, T, T d, const fl::scalar_args&) {
    return part == fl::scalar_part::value ? -x : -d;
  }
#endif
};
struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    return fl::record<negate_op, fl::real, fl::shape<fl::batch, 4>>(x.g, fl::from(x.id));
  }
};

constexpr int nodes = fl::graph_of<model>().size();
