// SPDX-License-Identifier: Apache-2.0
// Convolution, batch norm and pooling: gradients in double, agreement of the CPU's kernels, odd sizes, running statistics.
#include <fusionllm/device/cpu.hpp>

#include <fusionllm/device/reference.hpp>
#include <fusionllm/ops/ops.hpp>

#include "gradient_check.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fl::i64;
using fusionllm_test::check_gradients;
using fusionllm_test::distance;
using fusionllm_test::error_of;
using fusionllm_test::graph_runner;

namespace {

// A first convolution lets parameters into the input of what is tested, so that it has a cotangent.
template <i64 Channels, i64 Height, i64 Width, class F>
struct with {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, Channels, Height, Width>(g, "x");
    auto y = fl::output("y", F{}(x | fl::convolution<Channels, fl::window{}>.without_bias().named("first")));
    using shape = typename decltype(y)::shape_type;
    if constexpr (shape::rank == 4)
      return fl::mean_squared_error(
          y, fl::input<fl::real, fl::batch, shape::dims[1], shape::dims[2], shape::dims[3]>(g, "target"));
    else
      return fl::mean_squared_error(y, fl::input<fl::real, fl::batch, shape::dims[1]>(g, "target"));
  }
};

template <i64 Out, fl::window W, i64 Groups = 1, bool Bias = true>
struct conv {
  constexpr auto operator()(auto x) const {
    auto c = fl::convolution<Out, W, Groups>;
    c.has_bias = Bias;
    return x | c;
  }
};
struct norm {
  constexpr auto operator()(auto x) const { return x | fl::batch_norm; }
};
struct flat_norm {
  constexpr auto operator()(auto x) const { return x | fl::flatten | fl::batch_norm; }
};
template <fl::window W>
struct maximum {
  constexpr auto operator()(auto x) const { return x | fl::max_pool<W>; }
};
template <fl::window W>
struct mean {
  constexpr auto operator()(auto x) const { return x | fl::average_pool<W>; }
};
struct global_mean {
  constexpr auto operator()(auto x) const { return x | fl::global_average_pool | fl::flatten; }
};
/// The convolution's input has a second use, whose cotangent it adds to.
struct skip {
  constexpr auto operator()(auto x) const {
    return (x | fl::convolution<4, fl::window{.kernel = 3, .padding = 1}>.without_bias() | fl::batch_norm) + x;
  }
};

/// Calls f.operator()<Model>(batch) for windows, groups and sizes of every kind.
template <class F>
void for_each_convolution(F&& f) {
  using fl::window;
  f.template operator()<with<4, 7, 6, conv<3, window{}>>>();
  f.template operator()<with<4, 7, 6, conv<6, window{.kernel = 3, .padding = 1}>>>();
  f.template operator()<with<4, 7, 6, conv<5, window{.kernel = 3, .stride = 2, .padding = 1}, 1, false>>>();
  f.template operator()<with<4, 7, 6, conv<2, window{.kernel = 1, .stride = 2}>>>();
  f.template operator()<with<4, 7, 6, conv<6, window{.kernel = 3, .padding = 2, .dilation = 2}, 2>>>();
  f.template operator()<with<4, 7, 6, conv<4, window{.kernel = 3, .stride = 2, .padding = 1}, 4>>>();
  f.template operator()<with<4, 7, 6, conv<8, window{.kernel = 2, .stride = 3, .padding = 2}, 4>>>();
  f.template operator()<with<3, 11, 9, conv<4, window{.kernel = 7, .stride = 2, .padding = 3}, 1, false>>>();
  f.template operator()<with<3, 1, 1, conv<5, window{}>>>();
  f.template operator()<with<3, 1, 1, conv<5, window{.kernel = 3, .padding = 1}>>>();       // larger than the image
  f.template operator()<with<2, 2, 3, conv<3, window{.kernel = 5, .stride = 2, .padding = 3}>>>();
  f.template operator()<with<4, 5, 5, skip>>();
}
template <class F>
void for_each_pool(F&& f) {
  using fl::window;
  f.template operator()<with<2, 7, 6, maximum<window{.kernel = 3, .stride = 2, .padding = 1}>>>();
  f.template operator()<with<2, 6, 6, maximum<window{.kernel = 2, .stride = 2}>>>();
  f.template operator()<with<1, 1, 1, maximum<window{.kernel = 3, .stride = 2, .padding = 1}>>>();
  f.template operator()<with<1, 9, 9, maximum<window{.kernel = 17, .stride = 1, .padding = 8}>>>();
  f.template operator()<with<2, 7, 6, mean<window{.kernel = 3, .stride = 2, .padding = 1}>>>();
  f.template operator()<with<2, 5, 5, mean<window{.kernel = 2, .stride = 2}>>>();
  f.template operator()<with<3, 5, 4, global_mean>>();
  f.template operator()<with<3, 1, 1, global_mean>>();
}
template <class F>
void for_each_norm(F&& f) {
  f.template operator()<with<4, 3, 5, norm>>();
  f.template operator()<with<4, 1, 2, norm>>();
  f.template operator()<with<3, 2, 2, flat_norm>>();
}

template <class Model>
void agrees(fl::sizes s, double tolerance = 2e-6) {
  const fl::graph_view g = fl::graph_of<Model>();
  fl::reference<double>::context exact;
  graph_runner<fl::reference<double>> expected(g, fl::device_table<Model, fl::reference<double>>(), s, exact);
  expected.randomize(3);
  expected.forward();
  expected.backward();
  std::vector<std::vector<float>> bits;
  for (int threads : {1, 2, 3}) {
    fl::cpu::context c(threads);
    graph_runner<fl::cpu> found(g, fl::device_table<Model, fl::cpu>(), s, c);
    found.randomize(3);
    found.forward();
    found.backward();
    std::vector<std::vector<float>> mine;
    for (int i = 0; i < g.size(); ++i) {
      INFO("node " << i << ' ' << g.nodes[std::size_t(i)].op->name << ", batch " << s.batch);
      CHECK(distance(found.value(i), expected.value(i)) <= tolerance);
      if (!expected.cotangent(i).empty()) CHECK(distance(found.cotangent(i), expected.cotangent(i)) <= 4 * tolerance);
      mine.push_back(found.value(i));
      mine.push_back(found.cotangent(i));
    }
    for (int p = 0; p < found.parameter_count(); ++p) {
      INFO("parameter " << g.params[std::size_t(p)].path.view() << ", batch " << s.batch);
      CHECK(distance(found.gradient(p), expected.gradient(p)) <= 4 * tolerance);
      mine.push_back(found.gradient(p));
    }
    if (bits.empty()) bits = mine;
    CHECK(bits == mine);
  }
}

}  // namespace

TEST_CASE("gradients of convolution agree with differences") {
  for_each_convolution([]<class Model>() {
    check_gradients<Model>({1, 1});
    check_gradients<Model>({3, 1});
  });
}
TEST_CASE("gradients of pools agree with differences") {
  for_each_pool([]<class Model>() { check_gradients<Model>({2, 1}, 1, 1, 1e-6, 1e-6); });  // less than ties

}
TEST_CASE("the CPU's convolution agrees with plain loops in double") {
  for_each_convolution([]<class Model>() {
    agrees<Model>({1, 1});
    agrees<Model>({5, 1});
  });
}
TEST_CASE("the CPU's convolution agrees where images, positions, channels and outputs are cut into pieces") {
  using fl::window;
  agrees<with<4, 7, 6, conv<6, window{.kernel = 3, .padding = 1}>>>({40, 1});             // 12 images a piece
  agrees<with<4, 7, 6, conv<6, window{.kernel = 3, .stride = 2, .padding = 1}, 2>>>({100, 1});
  agrees<with<80, 5, 5, conv<130, window{.kernel = 3, .padding = 1}>>>({23, 1});
  agrees<with<80, 24, 23, conv<130, window{.kernel = 3, .padding = 1, .dilation = 1}>>>({2, 1});  // a piece is 22 rows
  agrees<with<140, 30, 20, conv<70, window{}>>>({2, 1});
  agrees<with<6, 2, 600, conv<4, window{.kernel = 3, .padding = 1}>>>({2, 1});            // a row is a piece
}
TEST_CASE("the CPU's pools agree with plain loops in double") {
  for_each_pool([]<class Model>() { agrees<Model>({3, 1}); });
}
TEST_CASE("the CPU's batch norm agrees with plain loops in double") {
  for_each_norm([]<class Model>() {
    agrees<Model>({2, 1});
    agrees<Model>({7, 1});
  });
}
TEST_CASE("gradients of batch norm agree with differences") {
  for_each_norm([]<class Model>() {
    check_gradients<Model>({2, 1});
    check_gradients<Model>({5, 1});
  });
}

namespace {

template <class Device>
void check_statistics() {
  using Model = with<2, 1, 2, norm>;
  using T = typename Device::real;
  typename Device::context c;
  const fl::graph_view g = fl::graph_of<Model>();
  graph_runner<Device> run(g, fl::device_table<Model, Device>(), {2, 1}, c);
  const auto named = [&](const char* n) { return fl::find_parameter(g, n); };
  run.parameter(named("first.weight")) = {1, 0, 0, 1};
  run.parameter(named("bn.weight")) = {1, 2};
  run.parameter(named("bn.bias")) = {0, 1};
  run.parameter(named("bn.running_mean")) = {7, 8};
  run.parameter(named("bn.running_var")) = {4, 16};
  run.value(fl::find_input(g, "x")) = {1, 2, 0, 0, 3, 4, 8, 0};  // channels: 1 2 3 4 and 0 0 8 0
  run.value(fl::find_input(g, "target")).assign(8, T(0));
  const int y = fl::find_output(g, "y");
  run.forward();
  CHECK(run.value(y)[0] == Approx(-1.5 / std::sqrt(1.25 + 1e-5)));
  CHECK(run.value(y)[6] == Approx(2 * 6 / std::sqrt(12 + 1e-5) + 1));
  run.statistic_share = 0.1;
  run.backward();
  const auto mean = run.gradient(named("bn.running_mean")), variance = run.gradient(named("bn.running_var"));
  CHECK(mean[0] == Approx(0.25));
  CHECK(mean[1] == Approx(0.2));
  CHECK(variance[0] == Approx(5 / 3. * 0.1));  // unbiased: 5 over 3
  CHECK(variance[1] == Approx(16 * 0.1));
  run.statistic_share = 1;
  run.backward();  // is added to
  CHECK(run.gradient(named("bn.running_mean"))[0] == Approx(2.75));
  run.mode = fl::pass::inference;
  run.forward();
  CHECK(run.value(y)[0] == Approx((1 - 7) / std::sqrt(4 + 1e-5)));
  CHECK(run.value(y)[6] == Approx(2 * (8 - 8) / std::sqrt(16 + 1e-5) + 1));
}

template <class Device>
void check_one_value() {
  using Model = with<3, 1, 1, norm>;
  typename Device::context c;
  graph_runner<Device> run(fl::graph_of<Model>(), fl::device_table<Model, Device>(), {1, 1}, c);
  run.randomize(1);
  const auto why = error_of([&] { run.forward(); });
  CHECK(why.code == fl::errc::model);
  CHECK(why.text.find("batch norm bn got one value per channel") != std::string::npos);
  run.parameter(fl::find_parameter(run.graph(), "bn.running_var")) = {1, 1, 1};
  run.mode = fl::pass::inference;
  run.forward();
  CHECK(std::isfinite(run.value(fl::find_output(run.graph(), "y"))[0]));
}

template <class Device>
void check_first_maximum() {
  using Model = with<1, 3, 3, maximum<fl::window{.kernel = 3, .stride = 2, .padding = 1}>>;
  typename Device::context c;
  const fl::graph_view g = fl::graph_of<Model>();
  graph_runner<Device> run(g, fl::device_table<Model, Device>(), {1, 1}, c);
  run.parameter(0) = {1};
  // Negative everywhere: padding, as a zero, would win. Two equal maxima: the first takes the cotangent.
  run.value(fl::find_input(g, "x")) = {-5, -2, -2, -7, -9, -9, -9, -9, -9};
  run.value(fl::find_input(g, "target")) = {-4, -3, -7, -9};
  run.forward();
  const int y = fl::find_output(g, "y");
  CHECK(std::vector<double>(run.value(y).begin(), run.value(y).end()) == std::vector<double>{-2, -2, -7, -9});
  run.backward();
  const auto& d = run.cotangent(g.nodes[std::size_t(y)].in[0]);
  CHECK(d[1] == Approx(2 * (2 + 1) / 4.));
  CHECK(d[2] == 0);
}

}  // namespace

TEST_CASE("batch norm: own statistics in training, running ones in inference, unbiased variances add up") {
  check_statistics<fl::reference<double>>();
  check_statistics<fl::reference<float>>();
  check_statistics<fl::cpu>();
}
TEST_CASE("batch norm of one value per channel is refused in training") {
  check_one_value<fl::reference<double>>();
  check_one_value<fl::cpu>();
}
TEST_CASE("max pool: padding never wins, of equal values the first does") {
  check_first_maximum<fl::reference<double>>();
  check_first_maximum<fl::cpu>();
}
