// SPDX-License-Identifier: Apache-2.0
// Names have at most 55 characters.
// expect: a full name in the model is longer than 55 characters: shorten the scopes
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
#ifdef POSITIVE
    return x | fl::scoped("a_scope_whose_name_is_just_right", fl::linear<4>);
#else
    return x | fl::scoped("a_scope_whose_name_is_rather_long_for_a_scope", fl::linear<4>.named("and_a_long_linear"));
#endif
  }
};

constexpr int nodes = fl::graph_of<model>().size();
