// SPDX-License-Identifier: Apache-2.0
// silu's vector loops, and chains of the element-wise operators that GPT has not.
#include <fusionllm/device/cpu/chain.hpp>

#include <limits>

#include <fusionllm/ops/ops.hpp>

#include "device_agreement.hpp"
#include "gradient_check.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
template <int N, class F>
struct regression {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, N>(g, "x") | fl::positions<150>;
    return fl::mean_squared_error(F{}(x), fl::input<fl::real, fl::batch, fl::time, N>(g, "target"));
  }
};
struct swiglu {
  constexpr auto operator()(auto x) const { return (x | fl::silu) * (x | fl::positions<150>.named("b")); }
};
struct arithmetic {  // x - x, too: one value twice
  constexpr auto operator()(auto x) const {
    auto y = fl::output("y", x | fl::softmax);
    return (x - x) + (x * 0.5 - y) * 2.0 - x / y + fl::divide(y, y);
  }
};
struct subtracted_last {  // chains in which backward reads no input
  constexpr auto operator()(auto x) const {
    auto y = x | fl::positions<150>.named("b");
    return ((x - y) * 0.3 - x | fl::dropout(0.2)) - y | fl::scale(-1);
  }
};
}  // namespace

TEST_CASE("gradients of chains with silu, subtract, divide and scale agree with central differences") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{2, 7}}) {
    check_gradients<regression<6, swiglu>>(s);
    check_gradients<regression<6, arithmetic>>(s);
    check_gradients<regression<6, subtracted_last>>(s);
  }
}
TEST_CASE("chains with silu, subtract, divide and scale on the CPU agree with plain loops in double") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{2, 3}, fl::sizes{3, 129}}) {
    check_agreement<regression<37, swiglu>>(s);
    check_agreement<regression<5, arithmetic>>(s);
    check_agreement<regression<37, subtracted_last>>(s);
  }
}
TEST_CASE("silu's loops are exact to fp32, keep their tails and pass on what is no number") {
  for (const auto isa : {fl::vector_isa::portable, fl::vector_isa::avx2, fl::vector_isa::avx512}) {
    if (!fl::has(isa)) continue;
    INFO(fl::name_of(isa));
    std::vector<float> x;
    for (float v = -30; v < 30; v += 0.0173f) x.push_back(v);
    for (float v : {-1e10f, -1e3f, 1e3f, 1e10f, std::numeric_limits<float>::quiet_NaN()}) x.push_back(v);
    std::vector<float> y(x.size()), d(x.size(), 1.0f), dx(x.size());
    fl::loops_for(isa).silu(x.data(), y.data(), i64(x.size()));
    fl::loops_for(isa).silu_backward(x.data(), d.data(), dx.data(), i64(x.size()));
    bool right = true;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      const double v = double(x[i]), s = 1 / (1 + std::exp(-v));
      right = right && std::abs(double(y[i]) - v * s) <= 4e-7 * std::abs(v * s) + 1e-30;
      right = right && std::abs(double(dx[i]) - s * (1 + v * (1 - s))) <= 1e-6;
    }
    CHECK(right);
    CHECK(std::isnan(y.back()));
    CHECK(std::isnan(dx.back()));
  }
}
