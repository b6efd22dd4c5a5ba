// SPDX-License-Identifier: Apache-2.0
// A multilayer perceptron on images, or on vectors: `channels` numbers of one pixel.
//
//   using trainer = fl::trainer<fl::mlp<fl::mlp_config{.hidden = 512, .layers = 3}>>;
#pragma once

#include "../ops/flatten.hpp"
#include "../ops/linear.hpp"
#include "../ops/loss.hpp"
#include "../ops/relu.hpp"

namespace fusionllm::inline v0 {

/// The default takes MNIST's images.
struct mlp_config {
  i64 channels = 1;
  i64 side = 28;
  i64 hidden = 256;  ///< features of every hidden layer
  int layers = 2;    ///< linear ones: one more than hidden layers
  i64 classes = 10;
  double smoothing = 0;  ///< of labels
};

/// Inputs `images` (batch, channels, side, side) and `labels` (batch); output `logits` (batch, classes); parameters
/// `layers.0.weight`, ...; the loss is cross-entropy.
template <mlp_config C = mlp_config{}>
struct mlp {
  static_assert(C.channels > 0 && C.side > 0 && C.hidden > 0 && C.layers > 0 && C.classes > 0,
                "an mlp_config needs at least one channel, pixel, feature, layer and class");
  static constexpr mlp_config config = C;

  static constexpr auto define(auto& g) {
    auto images = input<real, batch, C.channels, C.side, C.side>(g, "images");
    auto labels = input<i32, batch>(g, "labels");
    auto x = images | flatten;
    const auto before = g.enter("layers");
    auto logits = [&] {
      if constexpr (C.layers == 1)
        return x | linear<C.classes>.named("0");
      else {
        auto h = x | linear<C.hidden>.named("0") | relu;
        for (int i = 1; i + 1 < C.layers; ++i) {
          const auto inner = g.enter_index(unsigned(i));
          h = h | linear<C.hidden>.named("") | relu;
          g.leave(inner);
        }
        const auto inner = g.enter_index(unsigned(C.layers - 1));
        auto y = h | linear<C.classes>.named("");
        g.leave(inner);
        return y;
      }
    }();
    g.leave(before);
    return cross_entropy(output("logits", logits), labels, -100, C.smoothing);
  }
};

}  // namespace fusionllm::inline v0
