// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/initialize.hpp>

#include <algorithm>
#include <vector>

#include "catch.hpp"
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;
using fl::i64;
using fl::u64;

namespace {

struct wide {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 64>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 300>(g, "y");
    return fl::mean_squared_error(x | fl::layer_norm.named("ln") | fl::linear<300>.named("fc"), y);
  }
};

template <class T>
std::vector<T> values(const fl::parameter_info& p, u64 seed) {
  std::vector<T> w(p.count(), T(99));
  fl::initialize(w.data(), p, seed);
  return w;
}
template <class T>
std::pair<double, double> moments(const std::vector<T>& w) {
  double mean = 0, square = 0;
  for (T x : w) mean += double(x);
  mean /= double(w.size());
  for (T x : w) square += (double(x) - mean) * (double(x) - mean);
  return {mean, square / double(w.size())};
}

}  // namespace

TEST_CASE("the sum of uniforms has mean 0, variance 1, the fourth moment of its formula and a bounded range") {
  const fl::random_key key{3, 9, 0, 0};
  const int n = 200000;
  double mean = 0, square = 0, fourth = 0, largest = 0;
  for (int i = 0; i < n; ++i) {
    const double x = fl::nearly_normal(key, u64(i));
    mean += x / n;
    square += x * x / n;
    fourth += x * x * x * x / n;
    largest = std::max(largest, std::abs(x));
  }
  CHECK(std::abs(mean) < 0.01);
  CHECK(std::abs(square - 1) < 0.02);
  CHECK(std::abs(fourth - (3 - 1.2 / 8)) < 0.1);  // of eight uniforms
  CHECK(largest < 4.9);
  CHECK(largest > 3);
}

TEST_CASE("weights have their initializer's variance, and are a function of seed and name") {
  const auto g = fl::graph_of<wide>();
  int random = 0;
  for (const auto& p : g.params) {
    const auto w = values<float>(p, 1);
    const auto [mean, variance] = moments(w);
    INFO(p.path.view());
    switch (p.init.how) {
      case fl::initializer::kind::zeros: CHECK(mean == 0); CHECK(variance == 0); break;
      case fl::initializer::kind::ones: CHECK(mean == 1); CHECK(variance == 0); break;
      default: {
        ++random;
        const double expected = p.init.how == fl::initializer::kind::normal ? p.init.deviation * p.init.deviation : 1 / (3 * double(p.dims.last()));
        CHECK(std::abs(mean) < 0.03 * std::sqrt(expected));
        CHECK(variance == Approx(expected).epsilon(0.05));
        CHECK(values<float>(p, 1) == w);
        CHECK(values<float>(p, 2) != w);
        fl::parameter_info other = p;
        other.path = g.params[p.path.view() == g.params[0].path.view() ? 1 : 0].path;
        CHECK(values<float>(other, 1) != w);
        const auto wider = values<double>(p, 1);
        for (std::size_t i = 0; i < w.size(); ++i) CHECK(float(wider[i]) == w[i]);
      }
    }
  }
  CHECK(random > 0);
}

namespace {
fl::parameter_info convolution_weight(fl::initializer init) {
  fl::parameter_info p;
  p.path = fl::name("conv1.weight");
  p.dims = {4, {64, 16, 5, 5}};
  p.init = init;
  return p;
}
}  // namespace

TEST_CASE("a convolution's weight: fan-in and fan-out count taps, uniform values fill their range") {
  const double fan_in = 16 * 25, fan_out = 64 * 25;
  CHECK(moments(values<float>(convolution_weight(fl::fan_in), 1)).second == Approx(1 / (3 * fan_in)).epsilon(0.05));
  CHECK(moments(values<float>(convolution_weight(fl::fan_out), 1)).second == Approx(2 / fan_out).epsilon(0.05));
  for (double fan : {0.0, 100.0}) {
    const auto w = values<float>(convolution_weight(fl::uniform(fan)), 1);
    const double most = 1 / std::sqrt(fan > 0 ? fan : fan_in);
    CHECK(moments(w).second == Approx(most * most / 3).epsilon(0.05));
    CHECK(*std::max_element(w.begin(), w.end()) <= most);
    CHECK(*std::max_element(w.begin(), w.end()) > 0.999 * most);
    CHECK(*std::min_element(w.begin(), w.end()) < -0.999 * most);
  }
}
