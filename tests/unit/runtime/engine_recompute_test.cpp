// SPDX-License-Identifier: Apache-2.0
// Case C06: recomputation takes less memory and changes no bit.
#include <fusionllm/runtime/engine.hpp>

#include "catch.hpp"
#include "engines.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using policy = fl::recompute_policy;
constexpr policy policies[] = {policy::none, policy::block, policy::selective};

/// Six blocks, so that what one block computes again is a small part of what all keep.
struct deep_gpt {
  static constexpr int vocabulary = 31, time = 12;
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<vocabulary, 16>(g, "wte.weight");
    auto x = fl::embedding(tokens, wte) | fl::positions<time> | fl::repeat<6>(case_gpt::block) | fl::layer_norm;
    return fl::cross_entropy(fl::project(x, wte), targets);
  }
};

template <class Model>
struct outcome {
  std::vector<double> losses;
  named_bits weights, state;
  u64 arena = 0;  ///< of all peers
  bool same(const outcome& o) const { return losses == o.losses && weights == o.weights && state == o.state; }
};

template <class Model, class Device = fl::reference<float>>
outcome<Model> train(fl::plan p, policy how, int steps = 6) {
  p.recompute = how;
  group_options o;
  o.optimizer = lively_optimizer();
  engine_group<Model, Device> g(p, o);
  g.train(steps);
  outcome<Model> r{g.losses, g.weights(), g.optimizer_state()};
  for (int i = 0; i < g.size(); ++i) r.arena += g.engine(i).compute().arena_bytes();
  return r;
}

/// First and last nodes on one peer, and a cut inside a block.
fl::plan folded(int nodes) {
  fl::plan p = chain_plan(nodes, {{0}, {1}});
  for (int i = 0; i < nodes; ++i) p.stage_of[std::size_t(i)] = i > 7 && i < nodes - 6;
  return p;
}

}  // namespace

TEST_CASE("with dropout, on 1 and 3 stages, replicas and a folded plan: recomputation changes no bit") {
  const int n = fl::graph_of<case_gpt>().size();
  const auto expected = train<case_gpt>(chain_plan(n, {{0}}), policy::none, 12);
  for (policy how : policies)
    for (const fl::plan& p : {chain_plan(n, {{0}}), chain_plan(n, {{0}, {1}, {2}}), chain_plan(n, {{0}, {1, 2}}), folded(n)}) {
      INFO(fl::name_of(how) << ", " << p.stages() << " stages");
      CHECK(train<case_gpt>(p, how, 12).same(expected));
    }
}

TEST_CASE("what every node sees is the same: outputs once, cotangents once") {
  const int n = fl::graph_of<case_gpt>().size();
  std::vector<std::vector<std::pair<int, double>>> seen;
  for (policy how : policies) {
    fl::plan p = chain_plan(n, {{0}});
    p.recompute = how;
    engine_group<case_gpt, fl::reference<float>> g(p, {});
    seen.emplace_back();
    g.engine(0).compute().observe([&](int node, int, bool backward, const fl::tensor_ref& t) {
      double sum = 0;
      if (t.type == fl::dtype::f32)
        for (i64 i = 0; i < t.count(); ++i) sum += double(t.as<float>()[i]) * double(i % 7 + 1);
      seen.back().push_back({backward ? -node : node, sum});
    });
    g.train(2);
  }
  CHECK(seen[0].size() > 100);
  CHECK(seen[1] == seen[0]);
  CHECK(seen[2] == seen[0]);
}

TEST_CASE("recomputation takes less memory: blocks less than half, cheap values less than four fifths") {
  const int n = fl::graph_of<deep_gpt>().size();
  for (const auto& peers : {std::vector<std::vector<int>>{{0}}, {{0}, {1}, {2}}}) {
    const fl::plan p = chain_plan(n, peers);
    const auto none = train<deep_gpt>(p, policy::none), block = train<deep_gpt>(p, policy::block),
               selective = train<deep_gpt>(p, policy::selective);
    INFO(peers.size() << " stages: " << none.arena << ", " << block.arena << ", " << selective.arena);
    CHECK(block.same(none));
    CHECK(selective.same(none));
    CHECK(block.arena * 2 < none.arena);
    CHECK(selective.arena * 5 < none.arena * 4);
  }
}

TEST_CASE("more micro-batches of the same size take no more memory under 1F1B") {
  const int n = fl::graph_of<case_gpt>().size();
  for (const auto& peers : {std::vector<std::vector<int>>{{0}}, {{0}, {1}, {2}}}) {
    std::vector<u64> bytes;
    for (int micro_batches : {8, 32}) {
      fl::plan p = chain_plan(n, peers, micro_batches, 1);
      engine_group<case_gpt, fl::reference<float>> g(p, {});
      bytes.push_back(0);
      for (int i = 0; i < g.size(); ++i) bytes.back() += g.engine(i).compute().arena_bytes() + g.engine(i).parameters().bytes();
    }
    CHECK(bytes[0] == bytes[1]);
  }
}
