// SPDX-License-Identifier: Apache-2.0
// Residual networks (He et al., arXiv 1512.03385) as torchvision has them: names, order, initial values, and the stride
// of a bottleneck in its 3x3 convolution. Skips are edges of the graph like all others.
//
//   using trainer = fl::trainer<fl::resnet<101>>;                                    // 224 x 224, 1000 classes
//   using small = fl::resnet<18, 10, fl::resnet_stem::cifar>;                        // 32 x 32
//   struct own : fl::residual_network<fl::resnet_config{.blocks = {1, 1, 1, 1}, .classes = 10, .width = 16}> {};
#pragma once

#include "../ops/add.hpp"
#include "../ops/batch_norm.hpp"
#include "../ops/convolution.hpp"
#include "../ops/flatten.hpp"
#include "../ops/linear.hpp"
#include "../ops/loss.hpp"
#include "../ops/pooling.hpp"
#include "../ops/relu.hpp"
#include "names_resnet.hpp"

namespace fusionllm::inline v0 {

/// How a network begins: 7x7 convolution of stride 2 and a pool of stride 2, or a 3x3 convolution alone.
enum class resnet_stem { imagenet, cifar };

/// What one residual network differs in from another; the default is ResNet-18.
struct resnet_config {
  std::array<int, 4> blocks{2, 2, 2, 2};
  bool bottleneck = false;  ///< blocks of 1x1, 3x3 and 1x1 with four times the channels, not of two 3x3
  i64 classes = 1000;
  resnet_stem stem = resnet_stem::imagenet;
  i64 side = 224;  ///< images are (channels, side, side)
  i64 channels = 3;
  i64 width = 64;        ///< channels of the first layer; doubles from layer to layer
  double smoothing = 0;  ///< of labels
};

namespace detail {

/// A convolution that keeps the extents (for a stride of 1), without bias, as all of a residual network's are.
template <i64 Out, i64 Kernel, i64 Stride = 1>
constexpr auto resnet_conv(std::string_view name) {
  return convolution<Out, window{.kernel = Kernel, .stride = Stride, .padding = Kernel / 2}>
      .without_bias()
      .initialized(fan_out)
      .named(name);
}

/// (batch, channels, height, width) -> (batch, Width or 4 Width, height / Stride, width / Stride)
template <bool Bottleneck, i64 Width, i64 Stride>
constexpr auto resnet_block(auto x) {
  constexpr i64 out = Bottleneck ? 4 * Width : Width;
  const auto branch = [&] {
    if constexpr (Bottleneck)
      return x | resnet_conv<Width, 1>("conv1") | batch_norm.named("bn1") | relu
             | resnet_conv<Width, 3, Stride>("conv2") | batch_norm.named("bn2") | relu | resnet_conv<out, 1>("conv3")
             | batch_norm.named("bn3");
    else
      return x | resnet_conv<Width, 3, Stride>("conv1") | batch_norm.named("bn1") | relu
             | resnet_conv<Width, 3>("conv2") | batch_norm.named("bn2");
  }();
  if constexpr (Stride == 1 && decltype(x)::shape_type::dims[1] == out)
    return (branch + x) | relu;
  else
    return (branch + (x | scoped("downsample", resnet_conv<out, 1, Stride>("0") | batch_norm.named("1")))) | relu;
}

/// The blocks of one layer, of which the first has the stride.
template <bool Bottleneck, i64 Width, i64 Stride>
constexpr auto resnet_layer(auto x, std::string_view name, int blocks) {
  const auto before = x.g->enter(name);
  auto inner = x.g->enter_index(0);
  auto y = resnet_block<Bottleneck, Width, Stride>(x);
  y.g->leave(inner);
  for (int i = 1; i < blocks; ++i) {
    inner = y.g->enter_index(unsigned(i));
    y = resnet_block<Bottleneck, Width, 1>(y);
    y.g->leave(inner);
  }
  y.g->leave(before);
  return y;
}

template <resnet_stem Stem, i64 Width>
constexpr auto resnet_start(auto x) {
  if constexpr (Stem == resnet_stem::imagenet)
    return x | resnet_conv<Width, 7, 2>("conv1") | batch_norm.named("bn1") | relu
           | max_pool<window{.kernel = 3, .stride = 2, .padding = 1}>;
  else
    return x | resnet_conv<Width, 3>("conv1") | batch_norm.named("bn1") | relu;
}

/// Weights and biases start uniform within 1 / sqrt(features), as PyTorch's do.
template <i64 Classes, class S, class G>
constexpr auto resnet_classes(tensor<real, S, G> x) {
  const auto before = x.g->enter("fc");
  const int weight = x.g->add_parameter("weight", extents_of<shape<Classes, S::last>>(), uniform(), true);
  const int bias = x.g->add_parameter("bias", extents_of<shape<Classes>>(), uniform(double(S::last)), false);
  auto y = record<linear_op, real, shape<S::dims[0], Classes>>(x.g, from(x.id), {weight, bias});
  x.g->leave(before);
  return y;
}

}  // namespace detail

/// Inputs `images` (batch, channels, side, side) and `labels` (batch); output `logits` (batch, classes); the loss is
/// cross-entropy.
template <resnet_config C>
struct residual_network {
  static_assert(C.classes > 0 && C.channels > 0 && C.width > 0 && C.side > 0,
                "a resnet_config needs at least one class, channel, feature and pixel");
  static_assert(C.blocks[0] > 0 && C.blocks[1] > 0 && C.blocks[2] > 0 && C.blocks[3] > 0,
                "each layer of a residual network has at least one block");
  static constexpr resnet_config config = C;
  static constexpr weight_names file_names = resnet_names;

  static constexpr auto define(auto& g) {
    auto images = input<real, batch, C.channels, C.side, C.side>(g, "images");
    auto labels = input<i32, batch>(g, "labels");
    auto x = detail::resnet_start<C.stem, C.width>(images);
    auto a = detail::resnet_layer<C.bottleneck, C.width, 1>(x, "layer1", C.blocks[0]);
    auto b = detail::resnet_layer<C.bottleneck, 2 * C.width, 2>(a, "layer2", C.blocks[1]);
    auto c = detail::resnet_layer<C.bottleneck, 4 * C.width, 2>(b, "layer3", C.blocks[2]);
    auto d = detail::resnet_layer<C.bottleneck, 8 * C.width, 2>(c, "layer4", C.blocks[3]);
    auto logits = detail::resnet_classes<C.classes>(d | global_average_pool | flatten);
    return cross_entropy(output("logits", logits), labels, -100, C.smoothing);
  }
};

/// The published depths.
constexpr resnet_config resnet_of(int depth, i64 classes, resnet_stem stem) {
  resnet_config c;
  c.classes = classes;
  c.stem = stem;
  c.side = stem == resnet_stem::imagenet ? 224 : 32;
  c.bottleneck = depth >= 50;
  c.blocks = depth == 18 ? std::array{2, 2, 2, 2} : depth == 101 ? std::array{3, 4, 23, 3} : std::array{3, 4, 6, 3};
  return c;
}

/// ResNet-18, 34, 50 or 101.
template <int Depth, i64 Classes = 1000, resnet_stem Stem = resnet_stem::imagenet>
struct resnet : residual_network<resnet_of(Depth, Classes, Stem)> {
  static_assert(Depth == 18 || Depth == 34 || Depth == 50 || Depth == 101, "resnet<18>, <34>, <50> or <101>");
};

}  // namespace fusionllm::inline v0
