// SPDX-License-Identifier: Apache-2.0
// A planning problem's numbers, computed once and read by every candidate plan: what each operator costs on each peer,
// what each cut of the topological order carries, what each operator keeps for backward. What recomputation runs again
// counts as backward of the node that runs again. A position p of the order is
// the cut before its p-th operator; model inputs are not placed and have no position.
#pragma once

#include "problem.hpp"
#include "recompute.hpp"

namespace fusionllm::inline v0 {

class step_profile {
 public:
  /// Keeps the problem by reference. Errors: errc::plan for one that `check` refuses.
  explicit step_profile(const planning_problem& p) : problem_(&p) {
    check(p);
    const graph_view& g = p.graph;
    wanted_ = nodes_with_cotangent(g);
    keep_outputs();
    for (int i = 0; i < g.size(); ++i) {
      cost_.push_back(cost_of(g, i, p.micro_batch));
      if (!g.nodes[std::size_t(i)].op->placeholder) order_.push_back(i);
    }
    time_.resize(std::size_t(p.peers()) * g.nodes.size() * 2);
    for (int peer = 0; peer < p.peers(); ++peer)
      for (int i : order_) {
        const std::size_t at = (std::size_t(peer) * g.nodes.size() + std::size_t(i)) * 2;
        const std::string_view kind = g.nodes[std::size_t(i)].op->name;
        time_[at] = p.costs->compute(peer, kind, direction::forward, cost_[std::size_t(i)]);
        if (wanted_[std::size_t(i)])
          time_[at + 1] = plus(p.costs->compute(peer, kind, direction::backward, cost_[std::size_t(i)]), reruns_[std::size_t(i)] ? time_[at] : 0);
      }
    find_crossings();
  }

  const planning_problem& problem() const { return *problem_; }
  const graph_view& graph() const { return problem_->graph; }
  /// The nodes to place, ascending.
  const std::vector<int>& order() const { return order_; }
  const node_cost& cost(int node) const { return cost_[std::size_t(node)]; }
  const flags& wanted() const { return wanted_; }
  /// One micro-batch of one node; backward is 0 for a node that has none.
  nanoseconds time(int peer, int node, direction way) const {
    return time_[(std::size_t(peer) * graph().nodes.size() + std::size_t(node)) * 2 + (way == direction::backward)];
  }
  nanoseconds both(int peer, int node) const {
    return plus(time(peer, node, direction::forward), time(peer, node, direction::backward));
  }

  /// Bytes that a node leaves on its peer from forward to backward of one micro-batch.
  u64 kept_bytes(int node) const {
    if (!wanted_[std::size_t(node)] || dropped_[std::size_t(node)]) return 0;
    return cost(node).saved_bytes + (kept_[std::size_t(node)] ? cost(node).output_bytes : 0);
  }
  bool kept(int node) const { return kept_[std::size_t(node)]; }
  /// Bytes that a node that runs again in backward holds until its consumers have gone backward; 0 for the others.
  u64 rerun_bytes(int node) const {
    return reruns_[std::size_t(node)] ? cost(node).output_bytes + cost(node).saved_bytes : 0;
  }

  /// Nodes whose values cross the cut at position p of a chain.
  const std::vector<int>& crossing(int p) const { return crossing_[std::size_t(p)]; }
  /// Whether a chain may be cut there: only real tensors travel.
  bool legal_cut(int p) const {
    for (int i : crossing(p))
      if (graph().nodes[std::size_t(i)].type != element::real) return false;
    return true;
  }
  extents shape(int node) const { return graph().nodes[std::size_t(node)].out.resolve(problem_->micro_batch); }
  u64 wire_bytes(int node, const link_codec& c) const {
    return problem_->costs->wire_bytes(c.codec, c.ratio, shape(node), graph().nodes[std::size_t(node)].type);
  }
  /// Payload of the cut at position p in one direction.
  u64 cut_bytes(int p, const link_codec& c) const {
    u64 n = 0;
    for (int i : crossing(p)) n += wire_bytes(i, c);
    return n;
  }

 private:
  // As `kept_for_backward` says, for all nodes at once, and what nodes that run again read.
  void keep_outputs() {
    const graph_view& g = graph();
    kept_.assign(g.nodes.size(), u8(0));
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      if (!wanted_[i]) continue;
      const node& n = g.nodes[i];
      if (n.op->saves_output) kept_[i] = 1;
      for (std::size_t k = 0; k < max_inputs; ++k)
        if (n.in[k] >= 0 && (n.op->saves_inputs >> k & 1)) kept_[std::size_t(n.in[k])] = 1;
    }
    dropped_ = dropped_nodes(g, problem_->recompute);
    reruns_.assign(g.nodes.size(), u8(0));
    if (problem_->recompute == recompute_policy::none) return;
    rerun_finder finder(g, dropped_);
    for (int i = g.size() - 1; i >= 0; --i)
      if (wanted_[std::size_t(i)]) finder.before(i, [](int) { return true; }, [&](int v) { reruns_[std::size_t(v)] = 1; });
    for (std::size_t i = 0; i < g.nodes.size(); ++i)
      for (int in : g.nodes[i].in)
        if (reruns_[i] && in >= 0) kept_[std::size_t(in)] = 1;
  }

  void find_crossings() {
    const graph_view& g = graph();
    std::vector<int> position(g.nodes.size(), -1), last(g.nodes.size(), -1);
    for (std::size_t p = 0; p < order_.size(); ++p) {
      position[std::size_t(order_[p])] = int(p);
      for (int in : g.nodes[std::size_t(order_[p])].in)
        if (in >= 0) last[std::size_t(in)] = int(p);
    }
    crossing_.resize(order_.size() + 1);
    for (int i : order_)
      for (int p = position[std::size_t(i)] + 1; p <= last[std::size_t(i)]; ++p) crossing_[std::size_t(p)].push_back(i);
  }

  const planning_problem* problem_;
  std::vector<int> order_;
  std::vector<node_cost> cost_;
  flags wanted_, kept_, dropped_, reruns_;
  std::vector<nanoseconds> time_;  ///< [peer][node][forward, backward]
  std::vector<std::vector<int>> crossing_;
};

}  // namespace fusionllm::inline v0
