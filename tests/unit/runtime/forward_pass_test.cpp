// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/forward_pass.hpp>

#include "catch.hpp"
#include "engines.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;
using device = fl::reference<float>;

TEST_CASE("this process answers as its inference does") {
  const auto g = fl::graph_of<case_gpt>();
  device::context context;
  const fl::device_binding d{fl::device_table<case_gpt, device>(), &fl::vector_functions_of<device>, &context, fl::dtype::f32};
  std::vector<std::vector<float>> weights;
  for (const auto& p : g.params) {
    weights.emplace_back(p.count());
    fl::initialize(weights.back().data(), p, 3);
  }
  const auto weight = [&](int p) -> void* { return weights[std::size_t(p)].data(); };
  fl::inference one(g, g.loss, d, {3, 6}, weight);
  fl::local_forward pass(fl::inference(g, g.loss, d, {3, 6}, weight));
  fl::forward_pass& any = pass;
  CHECK(any.window() == 1);
  CHECK(any.bounds() == fl::sizes{3, 6});
  CHECK(any.needed() == one.needed());
  token_batch b(2, 5);
  b.fill(4, case_gpt::vocabulary);
  std::vector<const void*> inputs(g.nodes.size());
  inputs[0] = b.tokens.data();
  inputs[1] = b.targets.data();
  CHECK(*any.run({2, 5}, inputs, 0.25).as<float>() == *one.run({2, 5}, inputs, 0.25).as<float>());
}
