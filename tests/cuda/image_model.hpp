// SPDX-License-Identifier: Apache-2.0
// A model that has every operator of models of images: windows that overlap, leave gaps and lie half in the padding,
// groups, dilation, convolutions with and without bias.
#pragma once

#include <fusionllm/ops/ops.hpp>

namespace seam {

namespace fl = fusionllm;

struct image_model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4, 11, 9>(g, "x");
    auto labels = fl::input<fl::i32, fl::batch>(g, "labels");
    auto a = x | fl::convolution<6, fl::window{.kernel = 3, .stride = 2, .padding = 1}>.named("a") | fl::batch_norm
             | fl::relu | fl::max_pool<fl::window{.kernel = 3, .stride = 2, .padding = 1}> | fl::flatten;  // (54)
    auto b = x | fl::convolution<8, fl::window{.kernel = 3, .padding = 2, .dilation = 2}, 2>.named("b").without_bias();
    auto c = b | fl::average_pool<fl::window{.kernel = 3, .stride = 2, .padding = 1}> | fl::global_average_pool
             | fl::flatten;                                                                                // (8)
    auto d = b | fl::average_pool<fl::window{.kernel = 2, .stride = 3}>                                    // gaps
             | fl::max_pool<fl::window{.kernel = 2, .stride = 1}> | fl::flatten;                           // (48)
    auto e = x | fl::max_pool<fl::window{.kernel = 18, .stride = 4, .padding = 9}> | fl::flatten | fl::batch_norm;
    return fl::cross_entropy(fl::concatenate(a, c, d, e), labels);
  }
};

}  // namespace seam
