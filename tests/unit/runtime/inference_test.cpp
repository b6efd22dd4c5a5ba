// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/inference.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "graph_runner.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;
using device = fl::reference<float>;

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
