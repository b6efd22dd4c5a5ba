// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/reference/attention.hpp>

#include <fusionllm/device/reference.hpp>

#include "device_agreement.hpp"
#include "gradient_check.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
struct bare {  // q, k, v as given
  static constexpr auto define(auto& g) {
    auto qkv = fl::input<fl::real, fl::batch, fl::time, 18>(g, "qkv");
    return fl::record<fl::attention_op, fl::real, fl::shape<fl::batch, fl::time, 6>>(qkv.g, fl::from(qkv.id), {-1, -1},
                                                                                     {{2, 0, 0}, 0});
  }
};
template <int Heads, int KvHeads, int Width>
struct grouped {  // q, k, v in one tensor and in three, keys and values shared by groups of heads
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, Heads * Width>(g, "x") | fl::positions<300>;
    auto y = fl::output("y", x | fl::causal_attention<Heads, KvHeads>);
    auto k = x | fl::linear<KvHeads * Width>.without_bias();  // a bias of keys has no gradient
    auto v = x | fl::linear<KvHeads * Width>;
    auto z = y + fl::grouped_attention<Heads, KvHeads>(x, k, v) | fl::linear<3>;
    return fl::mean_squared_error(z, fl::input<fl::real, fl::batch, fl::time, 3>(g, "target"));
  }
};
struct given_keys {  // keys and values are data: only queries have a cotangent
  static constexpr auto define(auto& g) {
    auto q = fl::input<fl::real, fl::batch, fl::time, 8>(g, "q") | fl::positions<300>;
    auto k = fl::input<fl::real, fl::batch, fl::time, 4>(g, "k"), v = fl::input<fl::real, fl::batch, fl::time, 4>(g, "v");
    return fl::mean_squared_error(fl::grouped_attention<4, 2>(q, k, v),
                                  fl::input<fl::real, fl::batch, fl::time, 8>(g, "target"));
  }
};
struct one_for_all {  // q, k and v are one value
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x") | fl::positions<300>;
    return fl::mean_squared_error(fl::grouped_attention<2>(x, x, x),
                                  fl::input<fl::real, fl::batch, fl::time, 4>(g, "target"));
  }
};
template <int KvHeads>
struct repeated {  // what sharing means: heads 0, 1 read the first head of keys and values, heads 2, 3 the second
  static constexpr auto define(auto& g) {
    auto q = fl::input<fl::real, fl::batch, fl::time, 8>(g, "q");
    auto k = fl::input<fl::real, fl::batch, fl::time, 2 * KvHeads>(g, "k");
    auto v = fl::input<fl::real, fl::batch, fl::time, 2 * KvHeads>(g, "v");
    return fl::grouped_attention<4, KvHeads>(q, k, v);
  }
};
using device = fl::reference<double>;
graph_runner<device> runner(fl::sizes s, device::context& c) {
  return {fl::graph_of<bare>(), fl::device_table<bare, device>(), s, c};
}
}  // namespace

TEST_CASE("attention sees no later position and no other sequence") {
  device::context c;
  auto r = runner({2, 5}, c);
  r.randomize(1);
  r.forward();
  const auto before = r.value(1);
  for (int f = 0; f < 18; ++f) r.value(0)[std::size_t(3 * 18 + f)] += 1;  // sequence 0, position 3
  r.forward();
  for (int b = 0; b < 2; ++b)
    for (int t = 0; t < 5; ++t)
      for (int f = 0; f < 6; ++f) {
        const std::size_t i = std::size_t((b * 5 + t) * 6 + f);
        CHECK((r.value(1)[i] == before[i]) == (b == 1 || t < 3));
      }
}
TEST_CASE("the first position's result is its own value") {
  device::context c;
  auto r = runner({3, 1}, c);
  r.randomize(2);
  r.forward();
  for (int b = 0; b < 3; ++b)
    for (int f = 0; f < 6; ++f)
      CHECK(r.value(1)[std::size_t(b * 6 + f)] == Approx(r.value(0)[std::size_t(b * 18 + 12 + f)]).epsilon(1e-15));
}
TEST_CASE("equal keys give the mean of values, and huge scores do not overflow") {
  device::context c;
  auto r = runner({1, 4}, c);
  r.randomize(3);
  auto& x = r.value(0);
  for (int t = 0; t < 4; ++t)
    for (int f = 6; f < 12; ++f) x[std::size_t(t * 18 + f)] = 0.5;
  r.forward();
  for (int f = 0; f < 6; ++f) {
    double mean = 0;
    for (int t = 0; t < 4; ++t) mean += x[std::size_t(t * 18 + 12 + f)] / 4;
    CHECK(r.value(1)[std::size_t(18 + f)] == Approx(mean));
  }
  for (double& v : x) v *= 1000;
  r.forward();
  for (double y : r.value(1)) CHECK(std::isfinite(y));
}
TEST_CASE("inference gives training's values and saves nothing") {
  device::context c;
  auto a = runner({2, 5}, c), b = runner({2, 5}, c);
  b.mode = fl::pass::inference;
  a.randomize(1);
  b.randomize(1);
  a.forward();
  b.forward();
  CHECK(a.value(1) == b.value(1));
}
TEST_CASE("gradients of grouped-query attention agree with central differences") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{3, 1}, fl::sizes{2, 5}}) {
    check_gradients<grouped<4, 2, 2>>(s);
    check_gradients<grouped<3, 1, 2>>(s);
    check_gradients<grouped<2, 2, 3>>(s);
    check_gradients<given_keys>(s);
    check_gradients<one_for_all>(s);
  }
}
TEST_CASE("grouped-query attention on the CPU agrees with plain loops in double, around its blocks") {
  for (i64 time : {2, 63, 64, 65, 131}) {
    check_agreement<grouped<4, 2, 5>>({2, time}, 4e-6);
    check_agreement<grouped<3, 1, 1>>({1, time}, 4e-6);
  }
  check_agreement<given_keys>({2, 70});
  check_agreement<one_for_all>({2, 70});
}
TEST_CASE("shared keys and values are those of a model that repeats them for each head") {
  device::context c;
  graph_runner<device> a(fl::graph_of<repeated<2>>(), fl::device_table<repeated<2>, device>(), {2, 5}, c);
  graph_runner<device> b(fl::graph_of<repeated<4>>(), fl::device_table<repeated<4>, device>(), {2, 5}, c);
  a.randomize(1);
  for (const char* name : {"q", "k", "v"}) {
    const auto& from = a.value(fl::find_input(a.graph(), name));
    auto& to = b.value(fl::find_input(b.graph(), name));
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::size_t row = i / 8, head = i % 8 / 2;
      to[i] = name[0] == 'q' ? from[i] : from[row * 4 + head / 2 * 2 + i % 2];
    }
  }
  a.forward();
  b.forward();
  CHECK(a.value(a.graph().loss) == b.value(b.graph().loss));
}
