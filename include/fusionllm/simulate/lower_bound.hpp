// SPDX-License-Identifier: Apache-2.0
// What no schedule of a plan can beat: the busiest peer computes all its work one after another, the busiest link carries
// all its tensors one after another, and one micro-batch passes its longest way through the graph and back. Computed
// without the replay, which tests hold against it.
#pragma once

#include "../schedule/adaptive_codecs.hpp"
#include "../schedule/owners.hpp"

namespace fusionllm::inline v0 {

struct step_bound {
  nanoseconds compute = 0;  ///< of the busiest peer, its update included
  nanoseconds link = 0;     ///< of the busiest directed link, with its latency
  nanoseconds way = 0;      ///< the longest way of one micro-batch, operators and transfers
  nanoseconds step() const { return (std::max)({compute, link, way}); }
};

namespace detail {

inline link_codec codec_of_link(const plan& p, int from, int to) {
  for (const link_codec& c : p.codecs)
    if (c.from == from && c.to == to) return c;
  return {from, to, "none", 1};
}

// Of micro-batch 0, by the dependencies that `compile` makes into messages.
inline nanoseconds longest_way(const step_profile& f, const plan& p) {
  const graph_view& g = f.graph();
  const auto uses = cotangent_uses(g);
  std::vector<nanoseconds> done(g.nodes.size()), back(g.nodes.size());
  nanoseconds longest = 0;
  const auto peer = [&](int node) { return p.peer_of(p.stage_of[std::size_t(node)], 0); };
  const auto travel = [&](int value, int from, int to) {
    if (peer(from) == peer(to)) return nanoseconds(0);
    const link_codec c = codec_of_link(p, peer(from), peer(to));
    return f.problem().costs->transfer(peer(from), peer(to), f.wire_bytes(value, c));
  };
  for (int i : f.order()) {
    nanoseconds ready = 0;
    for (int in : g.nodes[std::size_t(i)].in)
      if (in >= 0 && !g.nodes[std::size_t(in)].op->placeholder)
        ready = (std::max)(ready, plus(done[std::size_t(in)], travel(in, in, i)));
    done[std::size_t(i)] = plus(ready, f.time(peer(i), i, direction::forward));
    longest = (std::max)(longest, done[std::size_t(i)]);
  }
  for (auto at = f.order().rbegin(); at != f.order().rend(); ++at) {
    const int i = *at;
    if (!f.wanted()[std::size_t(i)]) continue;
    nanoseconds ready = done[std::size_t(i)];
    const auto wait_for = [&](int value, const use& u) {
      if (u.node != i) ready = (std::max)(ready, plus(back[std::size_t(u.node)], travel(value, u.node, i)));
    };
    if (!uses[std::size_t(i)].empty()) wait_for(i, uses[std::size_t(i)].front());
    for (int in : g.nodes[std::size_t(i)].in) {
      if (in < 0) continue;
      const auto& theirs = uses[std::size_t(in)];
      for (std::size_t k = 0; k + 1 < theirs.size(); ++k)
        if (theirs[k].node == i) wait_for(in, theirs[k + 1]);
    }
    back[std::size_t(i)] = plus(ready, f.time(peer(i), i, direction::backward));
    longest = (std::max)(longest, back[std::size_t(i)]);
  }
  return longest;
}

}  // namespace detail

inline step_bound lower_bound(const step_profile& f, const plan& p) {
  const cost_model& costs = *f.problem().costs;
  step_bound b;
  std::vector<nanoseconds> busy(std::size_t(costs.peers()));
  for (int i : f.order())
    for (int m = 0; m < p.micro_batches; ++m) {
      const int peer = p.peer_of(p.stage_of[std::size_t(i)], m);
      busy[std::size_t(peer)] = plus(busy[std::size_t(peer)], f.both(peer, i));
    }
  std::vector<u64> owned(std::size_t(costs.peers()));
  const auto owners = owners_of(f.graph(), p);
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (owners[i].primary >= 0) owned[std::size_t(owners[i].primary)] += f.graph().params[i].count();
  for (int peer = 0; peer < costs.peers(); ++peer)
    b.compute = (std::max)(b.compute, plus(busy[std::size_t(peer)], costs.update(peer, owned[std::size_t(peer)])));
  for (const auto& l : detail::directed_loads(f, p)) {
    const link_codec c = detail::codec_of_link(p, l.from, l.to);
    b.link = (std::max)(b.link, plus(l.time(f, c.codec, c.ratio), costs.link(l.from, l.to).latency));
  }
  b.way = detail::longest_way(f, p);
  return b;
}

inline step_bound lower_bound(const planning_problem& problem, const plan& p) {
  check(p, problem.graph, problem.peers());
  const step_profile f(problem);
  return lower_bound(f, p);
}

}  // namespace fusionllm::inline v0
