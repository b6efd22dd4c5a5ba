// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/batch.hpp>

#include <fusionllm/graph/graph.hpp>
#include <fusionllm/graph/slice.hpp>
#include <fusionllm/ops/ops.hpp>
#include <vector>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {

struct regression {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 3>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 2>(g, "y");
    auto p = fl::output("p", x | fl::linear<2>);
    return fl::mean_squared_error(p, y);
  }
};

struct words {
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto table = fl::parameter<11, 4>(g, "table");
    auto logits = fl::output("logits", fl::project(fl::embedding(tokens, table), table));
    return fl::cross_entropy(logits, targets);
  }
};

const fl::graph_view numbers = fl::graph_of<regression>();
const fl::graph_view text = fl::graph_of<words>();
const fl::sizes bound{4, 8};

template <class T>
std::span<T> of(std::vector<T>& v) {
  return v;
}

}  // namespace

TEST_CASE("a batch in any order fixes the run-time extents") {
  std::vector<std::int32_t> tokens(12), targets(12);
  const auto b = fl::bind({{"targets", of(targets), {2, 6}}, {"tokens", of(tokens), {2, 6}}}, text, fl::dtype::f32, bound);
  CHECK(b.run == fl::sizes{2, 6});
  CHECK(b.find(fl::find_input(text, "tokens"))->data == tokens.data());
  CHECK(b.find(fl::find_input(text, "targets"))->data == targets.data());
  std::vector<float> x(9), y(6);
  CHECK(fl::bind({{"x", of(x), {3, 3}}, {"y", of(y), {3, 2}}}, numbers, fl::dtype::f32, bound).run == fl::sizes{3, 8});
}

TEST_CASE("an inference slice needs its inputs only") {
  std::vector<std::int32_t> tokens(5);
  const auto keep = fl::slice(text, fl::find_output(text, "logits"));
  const auto b = fl::bind({{"tokens", of(tokens), {1, 5}}}, text, fl::dtype::f32, bound, keep);
  CHECK(b.count == 1);
  CHECK(error_of([&] { fl::bind({{"tokens", of(tokens), {1, 5}}}, text, fl::dtype::f32, bound); })
            .says(fl::errc::model, "no input 'targets'", "(batch, time)"));
}

TEST_CASE("what does not fit is named with both sides") {
  std::vector<float> x(12), y(8);
  std::vector<double> wide(12);
  std::vector<std::int32_t> whole(12);
  auto bind = [&](const fl::batch_view& b, fl::dtype real = fl::dtype::f32) {
    return error_of([&] { fl::bind(b, numbers, real, bound); });
  };
  const fl::input_span good_x{"x", of(x), {4, 3}}, good_y{"y", of(y), {4, 2}};
  CHECK(bind({good_x, good_y}).code == fl::errc::ok);
  CHECK(bind({good_x}).says(fl::errc::model, "no input 'y'", "(batch, 2)"));
  CHECK(bind({good_x, good_y, {"z", of(y), {4, 2}}}).says(fl::errc::model, "'z'", "x, y"));
  CHECK(bind({good_x, good_x, good_y}).says(fl::errc::model, "'x' twice"));
  CHECK(bind({{"x", of(wide), {4, 3}}, good_y}).says(fl::errc::model, "'x' is f64", "expects f32"));
  CHECK(bind({{"x", of(whole), {4, 3}}, good_y}).says(fl::errc::model, "'x' is int32", "expects f32"));
  CHECK(bind({good_x, good_y}, fl::dtype::f64).says(fl::errc::model, "'x' is f32", "expects f64"));
  CHECK(bind({{"x", of(x), {3, 4}}, good_y}).says(fl::errc::model, "'x' has shape (3, 4)", "expects (batch, 3)"));
  CHECK(bind({{"x", of(x), {12}}, good_y}).says(fl::errc::model, "(12)", "expects (batch, 3)"));
  CHECK(bind({good_x, {"y", std::span(y).first(6), {3, 2}}}).says(fl::errc::model, "'y'", "batch is 3", "is 4"));
  std::vector<float> many(15), none;
  CHECK(bind({{"x", of(many), {5, 3}}, good_y}).says(fl::errc::model, "batch is 5, expected 1 to 4"));
  CHECK(bind({{"x", of(none), {0, 3}}, good_y}).says(fl::errc::model, "batch is 0, expected 1 to 4"));
}

TEST_CASE("a pointer that is null or unaligned is refused") {
  std::vector<std::int32_t> tokens(12);
  const fl::extents dims{2, {2, 5}};
  const char* odd = reinterpret_cast<const char*>(tokens.data()) + 1;
  auto bind = [&](const void* p) {
    const fl::input_span both[] = {{"tokens", fl::dtype::int32, dims, p}, {"targets", fl::dtype::int32, dims, tokens.data()}};
    return error_of([&] { fl::bind(fl::batch_view(both), text, fl::dtype::f32, bound); });
  };
  CHECK(bind(tokens.data()).code == fl::errc::ok);
  CHECK(bind(nullptr).says(fl::errc::model, "'tokens' has no data"));
  CHECK(bind(odd).says(fl::errc::model, "'tokens' is not aligned"));
}

TEST_CASE("a span of another size than its shape is refused before anything reads it") {
  std::vector<float> x(12);
  CHECK(error_of([&] { fl::input_span("x", of(x), {4, 4}); }).says(fl::errc::model, "'x' has 12 elements", "(4, 4) holds 16"));
  CHECK(error_of([&] { fl::output_span("x", of(x), {-4, -3}); }).says(fl::errc::model, "extent of -4"));
  CHECK(error_of([&] { fl::input_span("x", of(x), {}); }).says(fl::errc::model, "0 extents"));
  CHECK(error_of([&] { fl::input_span("x", of(x), {1, 1, 1, 1, 12}); }).says(fl::errc::model, "5 extents"));
  CHECK(error_of([&] { fl::input_span("x", of(x), {fl::i64(1) << 40, fl::i64(1) << 40}); }).says(fl::errc::model, "2^63"));
}
