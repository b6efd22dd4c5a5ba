// SPDX-License-Identifier: Apache-2.0
// The forward half of a plan's program, cut down to the nodes that one output needs: what each stage computes for a
// question, in which order, and which tensors cross. Every node in it is an ancestor of the output, so that an answer
// says that all of it has been computed.
#pragma once

#include "../graph/slice.hpp"
#include "../schedule/program.hpp"

namespace fusionllm::inline v0 {

/// What one stage, or one process alone, computes for an output: parts between two waits, in order.
struct forward_share {
  struct part {
    std::vector<int> nodes;     ///< in the order of execution
    std::vector<int> receives;  ///< nodes whose output must have come from another stage
    std::vector<int> sends;     ///< nodes whose output goes to another stage afterwards
  };
  int target = -1;
  std::vector<part> parts;
};

/// All of an output in one process.
inline forward_share whole_share(const graph_view& g, int target) {
  forward_share r{target, {{}}};
  const flags needed = slice(g, target);
  for (int i = 0; i < g.size(); ++i)
    if (needed[std::size_t(i)] && !g.nodes[std::size_t(i)].op->placeholder) r.parts[0].nodes.push_back(i);
  return r;
}

/// Stages of a checked plan computing one output: edges are activations, tasks go forward. Errors: model, when the
/// output is itself an input.
inline program forward_program(const graph_view& g, const plan& p, int target) {
  if (g.nodes[std::size_t(target)].op->placeholder)
    fail(errc::model, "the output '", g.nodes[std::size_t(target)].scope.view(), "' is an input of the model: there is nothing to compute");
  const program whole = compile(g, p);
  const flags needed = slice(g, target);
  const auto reads = [&](int i, int node) {
    const auto& in = g.nodes[std::size_t(i)].in;
    return needed[std::size_t(i)] && std::find(in.begin(), in.end(), node) != in.end();
  };
  program r;
  std::vector<int> number(whole.edges.size(), -1);
  for (std::size_t e = 0; e < whole.edges.size(); ++e) {
    const edge& x = whole.edges[e];
    bool wanted = false;
    for (int i = 0; i < g.size() && x.kind == edge_kind::activation; ++i)
      wanted = wanted || (p.stage_of[std::size_t(i)] == x.to && reads(i, x.node));
    if (!wanted) continue;
    number[e] = int(r.edges.size());
    r.edges.push_back(x);
  }
  r.tasks_of_stage.resize(std::size_t(p.stages()));
  for (const task& t : whole.tasks) {
    task k{t.stage, false, t.depth, {}, {}, {}, {}};
    for (int i : t.nodes)
      if (!t.backward && needed[std::size_t(i)]) k.nodes.push_back(i);
    if (k.nodes.empty()) continue;
    for (int e : t.receives)
      if (std::any_of(k.nodes.begin(), k.nodes.end(), [&](int i) { return reads(i, whole.edges[std::size_t(e)].node); }))
        k.receives.push_back(number[std::size_t(e)]);
    for (int e : t.sends)
      if (number[std::size_t(e)] >= 0) k.sends.push_back(number[std::size_t(e)]);
    r.tasks_of_stage[std::size_t(t.stage)].push_back(int(r.tasks.size()));
    r.tasks.push_back(std::move(k));
  }
  return r;
}

inline forward_share share_of(const program& forward, int stage, int target) {
  forward_share r{target, {}};
  for (int t : forward.tasks_of_stage[std::size_t(stage)]) {
    const task& x = forward.tasks[std::size_t(t)];
    forward_share::part k{x.nodes, {}, {}};
    for (int e : x.receives) k.receives.push_back(forward.edges[std::size_t(e)].node);
    for (int e : x.sends) detail::add_unique(k.sends, forward.edges[std::size_t(e)].node);
    r.parts.push_back(std::move(k));
  }
  return r;
}

}  // namespace fusionllm::inline v0
