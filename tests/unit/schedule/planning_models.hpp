// SPDX-License-Identifier: Apache-2.0
// Models and machines for the tests of schedule and simulate: small enough that steps can be computed by hand.
#pragma once

#include <fusionllm/estimate/cost_model.hpp>
#include <fusionllm/graph/graph.hpp>
#include <fusionllm/ops/ops.hpp>
#include <fusionllm/schedule/problem.hpp>

namespace planning_test {

namespace fl = fusionllm;

/// Nodes: 0 x, 1 y, then N linears of 8 features (2 .. N+1), then the loss (N+2).
template <int N>
struct linears {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 8>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 8>(g, "y");
    return fl::mean_squared_error(x | fl::repeat<N>(fl::linear<8>), y);
  }
};

/// One operator, without parameters.
struct one_operator {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 8>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 8>(g, "y");
    return fl::mean_squared_error(x, y);
  }
};

/// Two parts that share nothing; the second one does not reach the loss.
struct two_islands {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 8>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 8>(g, "y");
    auto z = fl::input<fl::real, fl::batch, 8>(g, "z");
    auto loss = fl::mean_squared_error(x | fl::linear<8>.named("a") | fl::linear<8>.named("b"), y);
    fl::output("aside", z | fl::linear<8>.named("c") | fl::linear<8>.named("d"));
    return loss;
  }
};

/// A GPT whose embedding is tied to its last projection.
template <int Layers, fl::i64 Width, fl::i64 Vocabulary = 256>
struct gpt {
  static constexpr auto block = fl::residual(fl::layer_norm | fl::causal_attention<4>) |
                                fl::residual(fl::layer_norm | fl::linear<4 * Width> | fl::gelu | fl::linear<Width>);
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<Vocabulary, Width>(g, "wte.weight");
    auto x = fl::embedding(tokens, wte) | fl::positions<1024> | fl::repeat<Layers>(block) | fl::layer_norm;
    return fl::cross_entropy(fl::output("logits", fl::project(x, wte)), targets);
  }
};

inline fl::u64 const plenty = fl::u64(1) << 40;

/// Peers on which every operator takes `each` forward and as much backward, and an update 5 ns; messages have no overhead.
inline fl::cost_model flat_costs(int peers, fl::nanoseconds each, const fl::path& between, fl::u64 memory = plenty) {
  fl::cost_model c(fl::uniform_cluster(peers, {"", 0, 1'000'000'000, memory, 0, 0}, between));
  for (int i = 0; i < peers; ++i) {
    fl::device_rates r;
    r.other.launch = each;
    r.update.launch = 5;
    c.set_rates(i, r);
  }
  c.set_message_overhead(0);
  return c;
}
inline void set_speed(fl::cost_model& c, int peer, fl::nanoseconds each) {
  fl::device_rates r = c.rates(peer);
  r.other.launch = each;
  c.set_rates(peer, r);
}

template <class Model>
fl::planning_problem problem_of(const fl::cost_model& costs, int micro_batches = 1, fl::sizes s = {1, 1}) {
  fl::planning_problem p;
  p.graph = fl::graph_of<Model>();
  p.costs = &costs;
  p.micro_batch = s;
  p.micro_batches = micro_batches;
  return p;
}

/// A plan with these stages for the nodes, one peer each: stage s on peer peers[s].
inline fl::plan plan_of(std::vector<int> stage_of, std::vector<std::vector<int>> peers, int micro_batches = 1, int groups = 1) {
  fl::plan p;
  p.stage_of = std::move(stage_of);
  p.peers = std::move(peers);
  p.micro_batches = micro_batches;
  p.groups = groups;
  return p;
}

}  // namespace planning_test
