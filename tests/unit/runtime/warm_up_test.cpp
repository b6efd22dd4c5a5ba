// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/warm_up.hpp>

#include <set>

#include "catch.hpp"
#include "engines.hpp"
#include <fusionllm/estimate/cost_model.hpp>

using namespace fusionllm_test;
namespace fl = fusionllm;
using device = fl::reference<float>;

TEST_CASE("a warm-up times every kind of operator both ways, and what is fitted to it is near what a step takes") {
  const auto g = fl::graph_of<case_gpt>();
  device::context context;
  const fl::device_binding binding{fl::device_table<case_gpt, device>(), &fl::vector_functions_of<device>, &context, fl::dtype::f32};
  const fl::sizes s{8, case_gpt::time};
  const auto samples = fl::warm_up(g, binding, s, 4);
  std::set<std::string> kinds, timed;
  for (const auto& n : g.nodes)
    if (!n.op->placeholder) kinds.insert(std::string(n.op->name));
  for (const auto& x : samples) {
    timed.insert(x.kind);
    CHECK(x.took >= 0);
    CHECK(x.took < fl::second);
  }
  CHECK(timed == kinds);
  for (const auto& kind : kinds)
    for (auto way : {fl::direction::forward, fl::direction::backward})
      CHECK(std::count_if(samples.begin(), samples.end(), [&](const auto& x) { return x.kind == kind && x.way == way; }) >= 3);

  fl::machine each;
  each.flops_per_second = 1'000'000'000;
  each.memory_bytes = u64(1) << 40;
  fl::cost_model costs(fl::uniform_cluster(1, each, {}));
  costs.set_rates(0, fl::fit_rates(samples, costs.rates(0)));
  fl::nanoseconds predicted = 0;
  for (int i = 0; i < g.size(); ++i) {
    if (g.nodes[std::size_t(i)].op->placeholder) continue;
    const auto c = fl::cost_of(g, i, s);
    for (auto way : {fl::direction::forward, fl::direction::backward}) {
      const fl::nanoseconds t = costs.compute(0, g.nodes[std::size_t(i)].op->name, way, c);
      CHECK(t >= 0);
      predicted += t;
    }
  }
  group_options o;
  o.bounds = s;
  engine_group<case_gpt, device> one(chain_plan(g.size(), {{0}}, 1, 1), o);
  fl::nanoseconds fastest = fl::second;
  for (int i = 0; i < 5; ++i) {
    one.train(1, 8, 0, 0);
    fastest = (std::min)(fastest, one.report().computed);
  }
  // Generous: other programs run on the machine that tests this.
  CHECK(predicted > fastest / 5);
  CHECK(predicted < fastest * 5);
}
