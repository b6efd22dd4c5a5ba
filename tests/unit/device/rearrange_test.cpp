// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference/rearrange.hpp>

#include <fusionllm/ops/ops.hpp>

#include "device_agreement.hpp"
#include "gradient_check.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
template <int N>
constexpr auto start(auto& g) {
  return fl::input<fl::real, fl::batch, fl::time, N>(g, "x") | fl::positions<150>;
}
template <int N>
constexpr auto regression(auto& g, auto y) {
  return fl::mean_squared_error(y | fl::linear<3>, fl::input<fl::real, fl::batch, fl::time, 3>(g, "target"));
}

struct reshaped {
  static constexpr auto define(auto& g) {
    auto heads = start<12>(g) | fl::reshape<fl::batch, fl::time, 3, 4>;
    auto y = heads | fl::layer_norm | fl::reshape<fl::batch, fl::time, 12>;
    return regression<12>(g, y + (heads | fl::reshape<fl::batch, fl::time, 12>));
  }
};
struct transposed {  // (batch, time, 3, 4) -> (batch, 3, time, 4) -> (batch, 3, 4, time) -> ... and back
  static constexpr auto define(auto& g) {
    auto x = start<12>(g) | fl::reshape<fl::batch, fl::time, 3, 4> | fl::transpose<1, 2>;
    auto y = x | fl::transpose<> | fl::softmax | fl::transpose<0, 2>;      // (4, 3, batch, time)
    auto z = y | fl::transpose<2, 0> | fl::transpose<1, -1>;               // (batch, time, 4, 3)
    return regression<12>(g, z | fl::reshape<fl::batch, fl::time, 12>);
  }
};
struct sliced {
  static constexpr auto define(auto& g) {
    auto x = start<11>(g);
    auto y = (x | fl::slice<-1, 2, 6>()) * (x | fl::slice<2, 7, 11>());
    auto rows = x | fl::transpose<0, 2> | fl::slice<0, 0, 4>() | fl::transpose<2, 0>;
    return regression<4>(g, y + rows);
  }
};
struct concatenated {
  static constexpr auto define(auto& g) {
    auto x = start<3>(g);
    auto data = fl::input<fl::real, fl::batch, fl::time, 2>(g, "data");  // no cotangent wanted
    auto y = fl::concatenate(x | fl::linear<5>, data, x, data, x);
    auto turned = x | fl::transpose<0, 2>;
    auto z = fl::concatenate<0>(turned, turned) | fl::transpose<0, 2>;
    return regression<15>(g, fl::output("z", z) + (y | fl::linear<6>));
  }
};

struct order {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 2, 3>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 1, 3>(g, "y");
    fl::output("transposed", x | fl::transpose<0, 1>);
    fl::output("last two", x | fl::transpose<>);
    fl::output("slice", x | fl::slice<1, 1, 2>());
    fl::output("reshaped", x | fl::reshape<6, fl::batch>);
    return fl::concatenate<1>(x, y, x);
  }
};
}  // namespace

TEST_CASE("gradients of reshape, transpose, slice and concatenate agree with central differences") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{3, 1}, fl::sizes{2, 5}}) {
    check_gradients<reshaped>(s);
    check_gradients<transposed>(s);
    check_gradients<sliced>(s);
    check_gradients<concatenated>(s);
  }
}
TEST_CASE("reshape, transpose, slice and concatenate on the CPU agree with plain loops in double") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{2, 3}, fl::sizes{3, 129}}) {
    check_agreement<reshaped>(s);
    check_agreement<transposed>(s);
    check_agreement<sliced>(s);
    check_agreement<concatenated>(s);
  }
}
TEST_CASE("elements go where they should") {
  using device = fl::reference<float>;
  device::context c;
  graph_runner<device> r(fl::graph_of<order>(), fl::device_table<order, device>(), {2, 1}, c);
  const auto& g = r.graph();
  r.value(fl::find_input(g, "x")) = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  r.value(fl::find_input(g, "y")) = {-1, -2, -3, -4, -5, -6};
  r.forward();
  using values = std::vector<float>;
  CHECK(r.value(fl::find_output(g, "transposed")) == values{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11});
  CHECK(r.value(fl::find_output(g, "last two")) == values{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11});
  CHECK(r.value(fl::find_output(g, "slice")) == values{3, 4, 5, 9, 10, 11});
  CHECK(r.value(fl::find_output(g, "reshaped")) == r.value(fl::find_input(g, "x")));
  CHECK(r.value(g.loss)
        == values{0, 1, 2, 3, 4, 5, -1, -2, -3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -4, -5, -6, 6, 7, 8, 9, 10, 11});
}
