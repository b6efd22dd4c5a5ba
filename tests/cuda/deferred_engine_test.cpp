// SPDX-License-Identifier: Apache-2.0
// The runtime on a device with memory of its own and work that runs later: the bits of plain host memory, for every way to
// cut the model, with and without compression; faults are found; a steady step allocates nothing.
#include <fusionllm/runtime/engine.hpp>

#include <limits>

#include "catch.hpp"
#include "deferred_device.hpp"
#include "engines.hpp"

namespace fl = fusionllm;
using fusionllm_test::case_gpt;
using fusionllm_test::chain_plan;
using fusionllm_test::engine_group;
using fusionllm_test::group_options;

namespace {

using plain = engine_group<case_gpt, fl::reference<float>>;
using deferred_group = engine_group<case_gpt, deferred::device>;

template <class Group>
std::unique_ptr<Group> trained(const fl::plan& p, const group_options& o, int steps = 6) {
  auto g = std::make_unique<Group>(p, o);
  g->train(steps);
  return g;
}

void compare(const fl::plan& p, const group_options& o) {
  const auto expected = trained<plain>(p, o);
  const auto found = trained<deferred_group>(p, o);
  CHECK(found->losses == expected->losses);
  CHECK(found->weights() == expected->weights());
  CHECK(found->optimizer_state() == expected->optimizer_state());
}

group_options options(std::string codec = std::string(fl::no_compression::label)) {
  group_options o;
  o.optimizer = fusionllm_test::lively_optimizer();
  o.codec = std::move(codec);
  return o;
}

}  // namespace

TEST_CASE("training where memory is the device's own gives the bits of host memory, however the model is cut") {
  const int nodes = fl::graph_of<case_gpt>().size();
  for (const std::vector<std::vector<int>>& peers : {std::vector<std::vector<int>>{{0}}, {{0, 1}}, {{0}, {1}, {2}}, {{0, 1}, {2}}, {{0}, {1, 2}}})
    for (const char* codec : {"no_compression", "ada_top_k", "half_precision"}) {
      INFO(peers.size() << " stages, " << codec);
      compare(chain_plan(nodes, peers), options(codec));
    }
}

TEST_CASE("recomputation and sgd too") {
  fl::plan p = chain_plan(fl::graph_of<case_gpt>().size(), {{0}, {1}});
  p.recompute = fl::recompute_policy::block;
  group_options o = options("int8");
  o.optimizer.kind = fl::optimizer_kind::sgd;
  compare(p, o);
}

TEST_CASE("a weight that is not finite is found there, and the step is skipped") {
  for (int peers : {1, 2}) {
    std::vector<std::vector<int>> stages;
    for (int i = 0; i < peers; ++i) stages.push_back({i});
    const fl::plan p = chain_plan(fl::graph_of<case_gpt>().size(), stages);
    const auto run = [&](auto& group) {
      group.train(1);
      auto& store = group.engine(0).parameters();
      store.to_host();
      store.host_writes();
      reinterpret_cast<float*>(store.parameters()[0].host_weight)[3] = std::numeric_limits<float>::infinity();
      group.train(1);
      return group.report().verdict;
    };
    plain a(p, options());
    deferred_group b(p, options());
    const auto expected = run(a), found = run(b);
    CHECK(found.skipped);
    CHECK(found.skipped == expected.skipped);
    CHECK(found.first.node == expected.first.node);
    CHECK(found.first.micro_batch == expected.first.micro_batch);
    CHECK(found.first.kind == expected.first.kind);
  }
}
