// SPDX-License-Identifier: Apache-2.0
// The object of operators that normalize the last dimension and scale it, and perhaps shift it.
#pragma once

#include "../graph/sequence.hpp"

namespace fusionllm::inline v0 {

/// Op says its usual `scope`, and whether it `shifts`: has a parameter `bias` beside `weight`, both (features). Its attr.x
/// is epsilon.
template <class Op>
struct norm_object : named_object<norm_object<Op>> {
  double epsilon = 1e-5;
  constexpr norm_object() : named_object<norm_object>(Op::scope) {}
  constexpr norm_object with_epsilon(double e) const {
    return this->changed([e](norm_object& c) { c.epsilon = e; });
  }
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    if constexpr (S::last < 0)
      return shape_mismatch<Op, S, fixed_last_extent>{};
    else {
      constexpr extents features = extents_of<shape<S::last>>();
      const auto before = x.g->enter(this->scope);
      const int weight = x.g->add_parameter("weight", features, ones, false);
      const int bias = Op::shifts ? x.g->add_parameter("bias", features, zeros, false) : -1;
      auto y = record<Op, real, S>(x.g, from(x.id), {weight, bias}, {{}, epsilon});
      x.g->leave(before);
      return y;
    }
  }
};

}  // namespace fusionllm::inline v0
