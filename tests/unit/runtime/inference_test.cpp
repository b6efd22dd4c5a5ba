// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/inference.hpp>

#include <fusionllm/device/cpu.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "graph_runner.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;
using device = fl::reference<float>;

static_assert(fl::type_of(fl::graph_of<case_gpt>(), fl::graph_of<case_gpt>().loss, fl::dtype::bf16) == fl::dtype::f32);
static_assert(fl::type_of(fl::graph_of<case_gpt>(), fl::graph_of<case_gpt>().loss - 1, fl::dtype::bf16) == fl::dtype::bf16);
static_assert(fl::type_of(fl::graph_of<case_gpt>(), 0, fl::dtype::bf16) == fl::dtype::int32);

TEST_CASE("inference is the forward pass without dropout, for any size within the bounds, and needs no targets for logits") {
  const auto g = fl::graph_of<case_gpt>();
  const int logits = fl::find_output(g, "logits");
  device::context context;
  const fl::device_binding binding{fl::device_table<case_gpt, device>(), &fl::vector_functions_of<device>, &context, fl::dtype::f32};
  std::vector<std::vector<float>> weights;
  for (const auto& p : g.params) {
    weights.emplace_back(p.count());
    fl::initialize(weights.back().data(), p, 3);
  }
  const auto weight = [&](int p) -> void* { return weights[std::size_t(p)].data(); };
  fl::inference predict(g, logits, binding, {4, case_gpt::time}, weight);
  fl::inference evaluate(g, g.loss, binding, {4, case_gpt::time}, weight);
  CHECK(!predict.needed()[1]);  // the targets
  CHECK(!predict.needed()[std::size_t(g.loss)]);
  CHECK(evaluate.needed()[1]);
  for (const fl::sizes s : {fl::sizes{4, 12}, fl::sizes{1, 12}, fl::sizes{3, 5}, fl::sizes{1, 1}}) {
    token_batch b(s.batch, s.time);
    b.fill(7, case_gpt::vocabulary);
    graph_runner<device> whole(g, fl::device_table<case_gpt, device>(), s, context);
    whole.mode = fl::pass::inference;
    whole.loss_scale = 0.25;
    whole.integers(0).assign(b.tokens.begin(), b.tokens.end());
    whole.integers(1).assign(b.targets.begin(), b.targets.end());
    for (int p = 0; p < whole.parameter_count(); ++p) whole.parameter(p) = weights[std::size_t(p)];
    const double loss = whole.forward();
    std::vector<const void*> inputs(g.nodes.size());
    inputs[0] = b.tokens.data();
    const fl::tensor_ref r = predict.run(s, inputs);
    CHECK(r.dims == g.nodes[std::size_t(logits)].out.resolve(s));
    CHECK(std::vector<float>(r.as<float>(), r.as<float>() + r.count()) == whole.value(logits));
    inputs[1] = b.targets.data();
    CHECK(double(*evaluate.run(s, inputs, 0.25).as<float>()) == loss);
  }
}

namespace {

// Attention beside what it needs in a small model: two layers, of which one has rotary positions and shared heads.
struct decoded_model {
  static constexpr i64 vocabulary = 17;
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto x = fl::embedding(tokens, fl::parameter<vocabulary, 16>(g, "wte")) | fl::positions<32>;
    auto y = x | fl::residual(fl::layer_norm | fl::causal_attention<2>) | fl::rms_norm;
    auto q = y | fl::linear<16>.named("q") | fl::rotary<4>;
    auto k = y | fl::linear<8>.named("k") | fl::rotary<4>;
    auto v = y | fl::linear<8>.named("v");
    auto z = fl::grouped_attention<4, 2>(q, k, v) + y;
    return fl::output("logits", z | fl::gelu | fl::linear<vocabulary>.named("head"));
  }
};

template <class Device>
void decode_everywhere() {
  using real = typename Device::real;
  const auto g = fl::graph_of<decoded_model>();
  const int logits = fl::find_output(g, "logits");
  REQUIRE(fl::decodable(g, logits));
  typename Device::context context(1);
  const fl::device_binding binding{fl::device_table<decoded_model, Device>(), &fl::vector_functions_of<Device>, &context,
                                   fl::dtype_of<real>};
  std::vector<std::vector<real>> weights;
  for (const auto& p : g.params) {
    weights.emplace_back(p.count());
    fl::initialize(weights.back().data(), p, 3);
  }
  const auto weight = [&](int p) -> void* { return weights[std::size_t(p)].data(); };
  const fl::sizes bounds{2, 24};
  fl::inference whole(g, logits, binding, bounds, weight), decoder(g, logits, binding, bounds, weight, fl::inference_kind::decoding);
  std::vector<std::int32_t> tokens(2 * 24);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * 7 % 17);
  std::vector<const void*> inputs(g.nodes.size());
  inputs[0] = tokens.data();
  const fl::tensor_ref all = whole.run({2, 24}, inputs);
  const std::vector<real> expected(all.as<real>(), all.as<real>() + all.count());
  fl::i64 past = 0;
  for (const fl::i64 steps : {7, 1, 1, 5, 10}) {
    std::vector<std::int32_t> part;
    for (fl::i64 b = 0; b < 2; ++b)
      part.insert(part.end(), tokens.begin() + b * 24 + past, tokens.begin() + b * 24 + past + steps);
    inputs[0] = part.data();
    const fl::tensor_ref r = decoder.run({2, steps}, inputs, 1, past);
    for (fl::i64 b = 0; b < 2; ++b)
      for (fl::i64 i = 0; i < steps * decoded_model::vocabulary; ++i) {
        const real found = r.as<real>()[b * steps * decoded_model::vocabulary + i];
        const real wanted = expected[std::size_t((b * 24 + past) * decoded_model::vocabulary + i)];
        CHECK(std::abs(double(found - wanted)) <= 64 * double(std::numeric_limits<real>::epsilon()));
      }
    past += steps;
  }
}

struct mixed_times {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 4>(g, "x");
    return fl::output("y", x | fl::linear<4> | fl::transpose<0, 1>);
  }
};

}  // namespace

TEST_CASE("decoding gives what the whole sequence gives, in parts of any length") {
  decode_everywhere<fl::reference<double>>();
  decode_everywhere<fl::reference<float>>();
  decode_everywhere<fl::cpu>();
}

TEST_CASE("what mixes times cannot be decoded") {
  const auto g = fl::graph_of<mixed_times>();
  CHECK(!fl::decodable(g, fl::find_output(g, "y")));
  device::context context;
  const fl::device_binding binding{fl::device_table<mixed_times, device>(), &fl::vector_functions_of<device>, &context, fl::dtype::f32};
  CHECK_THROWS_AS(fl::inference(g, fl::find_output(g, "y"), binding, {1, 4}, [](int) -> void* { return nullptr; },
                                fl::inference_kind::decoding),
                  fl::error);
}
