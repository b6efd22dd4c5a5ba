// SPDX-License-Identifier: Apache-2.0
// Case C01 on a device: losses, weights and optimizer state of a run are the same bits for every plan.
#pragma once

#include "catch.hpp"
#include "engines.hpp"

namespace fusionllm_test {

template <class Device, class Model = case_gpt>
struct same_bits {
  using group = engine_group<Model, Device>;

  /// Trains `steps` on one peer, then on plans of every kind and `random` random ones.
  same_bits(int steps, int random, int threads = 1) : steps_(steps), nodes_(fl::graph_of<Model>().size()) {
    options_.optimizer = lively_optimizer();
    options_.threads = threads;
    group one(cut(chain_plan(nodes_, {{0}})), options_);
    one.train(steps_);
    losses_ = one.losses;
    weights_ = one.weights();
    state_ = one.optimizer_state();
    REQUIRE(losses_.back() < losses_.front());
    for (auto schedule : {fl::schedule_kind::gpipe, fl::schedule_kind::one_f_one_b}) {
      schedule_ = schedule;
      for (int stages : {2, 3, 4}) compare("a chain", chain(stages));
      compare("first and last on one peer", ends_together());
      compare("2 replicas", chain_plan(nodes_, {{0, 1}}));
      compare("2 replicas, then 1", chain_plan(nodes_, {{0, 1}, {2}}));
      compare("1, then 2 replicas", chain_plan(nodes_, {{2}, {1, 0}}));
      compare("4 replicas", chain_plan(nodes_, {{3, 1, 0, 2}}));
    }
    for (int k = 0; k < random; ++k) compare("random", random_plan(u64(k)));
  }

 private:
  fl::plan chain(int stages) const {
    std::vector<std::vector<int>> peers;
    for (int i = 0; i < stages; ++i) peers.push_back({i});
    return chain_plan(nodes_, std::move(peers));
  }
  fl::plan ends_together() const {
    fl::plan p = chain_plan(nodes_, {{0}, {1}});
    for (int i = 0; i < nodes_; ++i) p.stage_of[std::size_t(i)] = i > 4 && i < nodes_ - 3;
    return p;
  }
  // Any node on any stage; every other one with a stage of two replicas.
  fl::plan random_plan(u64 seed) const {
    auto draw = [&, n = u64(0)](u32 below) mutable { return int(fl::random_word({seed, 77, 0, 0}, n++) % below); };
    const int stages = 2 + draw(4);
    fl::plan p = chain_plan(nodes_, std::vector<std::vector<int>>(std::size_t(stages)));
    for (int i = 0; i < nodes_; ++i) p.stage_of[std::size_t(i)] = i < 2 ? 0 : i < stages + 2 ? i - 2 : draw(u32(stages));
    int peer = 0;
    for (auto& r : p.peers) r.push_back(peer++);
    if (seed % 2) p.peers[std::size_t(draw(u32(stages)))].push_back(peer);
    p.schedule = seed % 3 ? fl::schedule_kind::one_f_one_b : fl::schedule_kind::gpipe;
    return p;
  }

  // Four groups of two micro-batches, of 2 or 1 rows: an order of summation within or across groups shows.
  static fl::plan cut(fl::plan p) {
    p.micro_batches = 8;
    p.groups = 4;
    return p;
  }
  void compare(const char* what, fl::plan p) {
    p = cut(std::move(p));
    if (what != std::string("random")) p.schedule = schedule_;
    INFO(what << ", " << p.stages() << " stages, " << fl::name_of(p.schedule));
    group g(p, options_);
    for (int s = 0; s < steps_; ++s) {
      g.train(1);
      g.weights();  // copies are equal after each step
    }
    CHECK(g.losses == losses_);
    CHECK(g.weights() == weights_);
    CHECK(g.optimizer_state() == state_);
  }

  int steps_, nodes_;
  fl::schedule_kind schedule_ = fl::schedule_kind::gpipe;
  group_options options_;
  std::vector<double> losses_;
  named_bits weights_, state_;
};

}  // namespace fusionllm_test
