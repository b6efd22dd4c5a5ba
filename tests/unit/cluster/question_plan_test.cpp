// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cluster/question_plan.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

TEST_CASE("the assignment's outputs are checked") {
  const fl::graph_view& g = case_binding().graph;
  const fl::plan p = chain_plan(g.size(), {{0}, {1}});
  fl::assignment a;
  const auto told = [&](fl::output_message m) {
    a.outputs = {std::move(m)};
    return error_of([&] { fl::forward_options_of(a, g, p, 0, {}); });
  };
  const auto node = u32(g.loss);
  CHECK(told({node, 0, 2, 4, 12, {}}).code == fl::errc::ok);
  CHECK(told({u32(g.size()), 0, 2, 4, 12, {}}).says(fl::errc::protocol, "node"));
  CHECK(told({node, 2, 1, 4, 12, {}}).code == fl::errc::protocol);
  CHECK(told({node, 1, 2, 4, 12, {}}).code == fl::errc::protocol);
  CHECK(told({node, 0, 65, 4, 12, {}}).code == fl::errc::protocol);
  CHECK(told({node, 0, 1, 0, 12, {}}).code == fl::errc::protocol);
  CHECK(told({node, 0, 1, 4, u64(1) << 40, {}}).code == fl::errc::protocol);
  CHECK(told({node, 0, 1, 4, 12, {1}}).says(fl::errc::protocol, "holds 1 tasks"));
  CHECK(told({0, 0, 1, 4, 12, {}}).says(fl::errc::model, "is an input"));
}

TEST_CASE("windows keep every stage of a plan busy, but for decoders") {
  const fl::graph_view& g = case_binding().graph;
  const fl::plan p = chain_plan(g.size(), {{0}, {1}, {2}});
  const auto o = fl::with_windows({{g.loss, fl::inference_kind::whole, {2, 12}}, {3, fl::inference_kind::decoding, {2, 12}}}, p);
  CHECK(o[0].window == 4);
  CHECK(o[1].window == 1);
}

TEST_CASE("what the broker says of an output is what the peer takes up") {
  const fl::graph_view& g = case_binding().graph;
  auto s = small_run(2);
  const fl::cost_model costs(*s.machines, case_binding().encoded_bytes);
  const fl::planning_problem problem = fl::problem_of(case_binding(), s, costs);
  const fl::plan p = chain_plan(g.size(), {{0}, {1}});
  const fl::forward_output o{g.loss, fl::inference_kind::whole, {3, 12}, 3};
  fl::assignment a;
  a.outputs = {fl::to_message(o, problem, p, 1, true)};
  const fl::forward_options r = fl::forward_options_of(a, g, p, 1, {});
  REQUIRE(r.outputs.size() == 1);
  CHECK((r.outputs[0].node == o.node && r.outputs[0].kind == o.kind && r.outputs[0].bounds == o.bounds && r.outputs[0].window == 3));
  REQUIRE(r.holds.size() == 1);
  CHECK((r.holds[0][0] == 0 && r.holds[0][1] > 0));
  a.outputs = {fl::to_message(o, problem, p, 1, false)};
  CHECK(fl::forward_options_of(a, g, p, 1, {}).holds.empty());
}
