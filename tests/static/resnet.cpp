// SPDX-License-Identifier: Apache-2.0
// What is known at compile time of residual networks and perceptrons.
#include <fusionllm/graph/fingerprint.hpp>
#include <fusionllm/graph/graph.hpp>
#include <fusionllm/models/mlp.hpp>
#include <fusionllm/models/resnet.hpp>

namespace fl = fusionllm;

namespace {

template <class Model>
constexpr fl::u64 count = fl::parameter_count(fl::graph_of<Model>());
template <class Model>
constexpr bool has(std::string_view parameter, fl::extents dims, bool trained = true) {
  const fl::graph_view g = fl::graph_of<Model>();
  const int p = fl::find_parameter(g, parameter);
  return p >= 0 && g.params[std::size_t(p)].dims == dims && g.params[std::size_t(p)].trained() == trained;
}
template <class Model>
constexpr fl::extents result(std::string_view output) {
  const fl::graph_view g = fl::graph_of<Model>();
  return g.nodes[std::size_t(fl::find_output(g, output))].out;
}
template <class Model>
constexpr fl::u64 statistics() {
  fl::u64 n = 0;
  for (const auto& p : fl::graph_of<Model>().params) n += p.trained() ? 0 : p.count();
  return n;
}

using fl::resnet_stem;

// torchvision's counts.
static_assert(count<fl::resnet<18>> == 11'689'512);
static_assert(count<fl::resnet<50>> == 25'557'032);
static_assert(count<fl::resnet<101>> == 44'549'160);
static_assert(statistics<fl::resnet<101>>() == 105'344);
static_assert(fl::graph_of<fl::resnet<101>>().params.size() == 314 + 208);
static_assert(count<fl::resnet<18, 10, resnet_stem::cifar>> == 11'689'512 - 64 * 3 * 40 - 990 * 513);

using large = fl::resnet<101>;
static_assert(has<large>("conv1.weight", {4, {64, 3, 7, 7}}) && has<large>("bn1.bias", {1, {64}}));
static_assert(has<large>("bn1.running_mean", {1, {64}}, false) && has<large>("layer3.22.bn3.running_var", {1, {1024}}, false));
static_assert(has<large>("layer1.0.conv1.weight", {4, {64, 64, 1, 1}}) && has<large>("layer1.0.conv2.weight", {4, {64, 64, 3, 3}}));
static_assert(has<large>("layer1.0.downsample.0.weight", {4, {256, 64, 1, 1}}) && has<large>("layer1.0.downsample.1.weight", {1, {256}}));
static_assert(has<large>("layer3.22.conv3.weight", {4, {1024, 256, 1, 1}}) && has<large>("layer4.2.bn3.weight", {1, {2048}}));
static_assert(has<large>("fc.weight", {2, {1000, 2048}}) && has<large>("fc.bias", {1, {1000}}));
static_assert(result<large>("logits") == fl::extents{2, {fl::batch, 1000}});

using small = fl::resnet<18, 10, resnet_stem::cifar>;
static_assert(has<small>("layer2.0.downsample.0.weight", {4, {128, 64, 1, 1}}) && has<small>("layer4.1.conv2.weight", {4, {512, 512, 3, 3}}));
static_assert(fl::find_parameter(fl::graph_of<small>(), "layer1.0.downsample.0.weight") < 0);

// Strides: 224 pixels end as 7, 32 as 4.
template <class Model>
constexpr fl::i64 last_side() {
  const fl::graph_view g = fl::graph_of<Model>();
  fl::i64 side = 0;
  for (const auto& n : g.nodes)
    if (n.op->name == "convolution") side = n.out.d[3];
  return side;
}
static_assert(last_side<large>() == 7 && last_side<small>() == 4);

// A skip is an edge: the sum at a block's end reads the block's input, or its downsampling.
constexpr int skips() {
  constexpr fl::graph_view g = fl::graph_of<small>();
  int n = 0;
  for (const auto& x : g.nodes) n += x.input_count() == 2 && !x.op->loss;
  return n;
}
static_assert(skips() == 8);

static_assert(count<fl::mlp<>> == 784 * 256 + 256 + 256 * 10 + 10);
using deep = fl::mlp<fl::mlp_config{.channels = 20, .side = 1, .hidden = 8, .layers = 4, .classes = 3}>;
static_assert(has<deep>("layers.0.weight", {2, {8, 20}}) && has<deep>("layers.2.bias", {1, {8}}) && has<deep>("layers.3.weight", {2, {3, 8}}));
using flat = fl::mlp<fl::mlp_config{.layers = 1}>;
static_assert(has<flat>("layers.0.weight", {2, {10, 784}}));

}  // namespace
