// SPDX-License-Identifier: Apache-2.0
// The models and numbers of make_images.py.
#pragma once

#include <fusionllm/models/resnet.hpp>
#include <fusionllm/ops/ops.hpp>

#include "numbers.hpp"

namespace fusionllm_test {

namespace fl = fusionllm;
using fl::i64;
using fl::u32;

struct small_images {
  static constexpr i64 batch = 2, channels = 4, height = 7, width = 6;
};
struct large_images {
  static constexpr i64 batch = 4, channels = 32, height = 28, width = 26;
};

/// The operator Object (of the number of channels) behind a 1x1 convolution.
template <class Case, class Size>
struct image_model {
  using size = Size;
  static constexpr const char* name = Case::name;
  static constexpr auto define(auto& g) {
    constexpr i64 c = Size::channels;
    auto in = fl::input<fl::real, fl::batch, c, Size::height, Size::width>(g, "images");
    auto x = fl::output("x", in | fl::convolution<c, fl::window{}>.without_bias().named("first"));
    auto y = fl::output("y", x | Case::template op<c>());
    using S = typename decltype(y)::shape_type;
    return fl::mean_squared_error(y, fl::input<fl::real, fl::batch, S::dims[1], S::dims[2], S::dims[3]>(g, "target"));
  }
};

using fl::window;
struct pointwise_case {
  static constexpr const char* name = "pointwise";
  template <i64 C>
  static constexpr auto op() { return fl::convolution<2 * C, window{}>; }
};
struct three_case {
  static constexpr const char* name = "three";
  template <i64 C>
  static constexpr auto op() { return fl::convolution<C, window{.kernel = 3, .padding = 1}>; }
};
struct strided_case {
  static constexpr const char* name = "strided";
  template <i64 C>
  static constexpr auto op() { return fl::convolution<2 * C, window{.kernel = 3, .stride = 2, .padding = 1}>.without_bias(); }
};
struct strided_pointwise_case {
  static constexpr const char* name = "strided_pointwise";
  template <i64 C>
  static constexpr auto op() { return fl::convolution<2 * C, window{.stride = 2}>.without_bias(); }
};
struct dilated_case {
  static constexpr const char* name = "dilated";
  template <i64 C>
  static constexpr auto op() { return fl::convolution<C, window{.kernel = 3, .padding = 2, .dilation = 2}, 2>; }
};
struct depthwise_case {
  static constexpr const char* name = "depthwise";
  template <i64 C>
  static constexpr auto op() { return fl::convolution<C, window{.kernel = 3, .padding = 1}, C>; }
};
struct seven_case {
  static constexpr const char* name = "seven";
  template <i64 C>
  static constexpr auto op() { return fl::convolution<C, window{.kernel = 7, .stride = 2, .padding = 3}>.without_bias(); }
};
struct batch_norm_case {
  static constexpr const char* name = "batch_norm";
  template <i64 C>
  static constexpr auto op() { return fl::batch_norm; }
};
struct max_pool_case {
  static constexpr const char* name = "max_pool";
  template <i64 C>
  static constexpr auto op() { return fl::max_pool<window{.kernel = 3, .stride = 2, .padding = 1}>; }
};
struct average_pool_case {
  static constexpr const char* name = "average_pool";
  template <i64 C>
  static constexpr auto op() { return fl::average_pool<window{.kernel = 3, .stride = 2, .padding = 1}>; }
};
struct global_average_pool_case {
  static constexpr const char* name = "global_average_pool";
  template <i64 C>
  static constexpr auto op() { return fl::global_average_pool; }
};

/// Calls f.template operator()<Model>() for every operator at one size.
template <class Size, class F>
void for_each_image_model(F&& f) {
  f.template operator()<image_model<pointwise_case, Size>>();
  f.template operator()<image_model<three_case, Size>>();
  f.template operator()<image_model<strided_case, Size>>();
  f.template operator()<image_model<strided_pointwise_case, Size>>();
  f.template operator()<image_model<dilated_case, Size>>();
  f.template operator()<image_model<depthwise_case, Size>>();
  f.template operator()<image_model<seven_case, Size>>();
  f.template operator()<image_model<batch_norm_case, Size>>();
  f.template operator()<image_model<max_pool_case, Size>>();
  f.template operator()<image_model<average_pool_case, Size>>();
  f.template operator()<image_model<global_average_pool_case, Size>>();
}

struct basic_blocks : fl::residual_network<fl::resnet_config{
                          .blocks = {1, 2, 1, 1}, .classes = 10, .stem = fl::resnet_stem::cifar, .side = 16, .width = 8}> {
  static constexpr const char* name = "basic_blocks";
};
struct bottlenecks : fl::residual_network<fl::resnet_config{
                         .blocks = {1, 1, 2, 1}, .bottleneck = true, .classes = 10, .side = 64, .width = 4}> {
  static constexpr const char* name = "bottlenecks";
};

struct as_deep_as_101 : fl::residual_network<fl::resnet_config{
                            .blocks = {3, 4, 23, 3}, .bottleneck = true, .classes = 10, .side = 64, .width = 4}> {
  static constexpr const char* name = "as_deep_as_101";
};

/// Element i of what make_images.py draws under a name.
inline double drawn(std::string_view name, std::size_t i, u32 seed) {
  u32 h = 2166136261u;
  for (char c : name) h = (h ^ u32(static_cast<unsigned char>(c))) * 16777619u;
  u32 x = u32(i) * 2654435761u + h + seed * 40503u;
  x = (x ^ x >> 16) * 0x7FEB352Du;
  x = (x ^ x >> 15) * 0x846CA68Bu;
  x ^= x >> 16;
  return double(x >> 8) / 16777216.0 - 0.5;
}
/// Element i of a parameter as the script starts it; statistics start as 0 and 1.
inline float started(const fl::parameter_info& p, std::size_t i, u32 seed) {
  const std::string_view name = p.path.view();
  if (!p.trained()) return name.ends_with("var") ? 1.0f : 0.0f;
  if (p.dims.rank == 1) return (name.ends_with("weight") ? 1.0f : 0.0f) + float(drawn(name, i, seed));
  return float(2 / std::sqrt(double(p.dims.count() / p.dims.d[0]))) * float(drawn(name, i, seed));
}

/// One result of images.txt: every so many elements of a tensor.
struct image_result {
  std::string name, kind, tensor;
  std::vector<double> values;
};
inline std::vector<image_result> image_results(const std::string& name) {
  std::ifstream in = open_numbers("images.txt");
  std::vector<image_result> r;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    image_result x;
    std::string colon;
    words >> x.name >> x.kind >> x.tensor >> colon;
    if (x.name != name) continue;
    for (double v; words >> v;) x.values.push_back(v);
    r.push_back(x);
  }
  REQUIRE(r.size() > 4);
  return r;
}
/// What images.txt holds of x.
template <class T>
std::vector<double> sampled(const std::vector<T>& x) {
  std::vector<double> r;
  const std::size_t step = x.size() / 40 < 1 ? 1 : x.size() / 40;
  for (std::size_t i = 0; i < x.size(); i += step) r.push_back(double(x[i]));
  return r;
}
inline double image_distance(const std::string& name, const std::string& kind, const std::string& tensor) {
  std::ifstream in = open_numbers("image_distances.txt");
  std::string a, b, c;
  for (double d; in >> a >> b >> c >> d;)
    if (a == name && b == kind && c == tensor) return d;
  FAIL("image_distances.txt has no line for " << name << ' ' << kind << ' ' << tensor);
  return 0;
}

}  // namespace fusionllm_test
