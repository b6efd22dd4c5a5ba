// SPDX-License-Identifier: Apache-2.0
// A plan compiled into tasks and messages, the same for the run and for the simulator. A task is what a stage does for
// one micro-batch between two waits: its nodes (forward or backward) whose longest chain of hops between stages is equal.
// Every message of a micro-batch has an edge: an activation on its way forward, or a partial sum of cotangents on its
// way back. Depths grow along edges, so that no plan can deadlock.
#pragma once

#include <tuple>
#include <utility>

#include "recompute.hpp"

namespace fusionllm::inline v0 {

enum class edge_kind : u8 { activation, cotangent };

/// One tensor that crosses from a stage to another for every micro-batch. Its shape is that of `node`'s output.
struct edge {
  edge_kind kind = edge_kind::activation;
  int node = -1;        ///< whose output, or whose output's cotangent
  int use = -1;         ///< a cotangent: the sum over uses use, use+1, ... of `node`
  int from = -1;        ///< stage
  int to = -1;          ///< stage
  int forward = -1;     ///< a cotangent: the activation edge of the same node between the same stages in the other
                        ///< direction, whose mask its compressor shares; -1 if there is none
};

/// A node of which backward needs what forward dropped.
struct rerun {
  int node = -1;
  int before = 0;  ///< it runs forward again just before the backward of this place of the task's nodes
};

struct task {
  int stage = -1;
  bool backward = false;
  int depth = 0;              ///< hops before it
  std::vector<int> nodes;     ///< in the order of execution: ascending forward, descending backward
  std::vector<int> receives;  ///< edges that must have arrived
  std::vector<int> sends;     ///< edges that it fills
  std::vector<rerun> reruns{};  ///< of a backward task, in the order of execution
};

/// Calls rerun(node) and run(node) for what a task does, in order.
template <class Rerun, class Run>
void in_order(const task& t, Rerun&& again, Run&& run) {
  std::size_t next = 0;
  for (int i = 0; i < int(t.nodes.size()); ++i) {
    for (; next < t.reruns.size() && t.reruns[next].before == i; ++next) again(t.reruns[next].node);
    run(t.nodes[std::size_t(i)]);
  }
}

struct program {
  std::vector<edge> edges;
  std::vector<task> tasks;                       ///< forward tasks by (stage, depth), then backward tasks
  std::vector<std::vector<int>> tasks_of_stage;  ///< in the order in which one micro-batch passes them
  std::vector<std::vector<use>> uses;            ///< of every node: who sends it a cotangent, ascending
  flags wanted;                                  ///< nodes that go backward

  int find_edge(edge_kind kind, int node, int use_index, int to) const {
    for (std::size_t e = 0; e < edges.size(); ++e)
      if (edges[e].kind == kind && edges[e].node == node && edges[e].to == to &&
          (kind == edge_kind::activation || edges[e].use == use_index))
        return int(e);
    return -1;
  }
};

namespace detail {

/// Index of consumer (node, slot) among the uses of the value it reads.
inline int use_index(const std::vector<use>& uses, int node, int slot) {
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (uses[i] == use{node, slot}) return int(i);
  return -1;
}

inline void add_unique(std::vector<int>& v, int x) {
  for (int y : v)
    if (x == y) return;
  v.push_back(x);
}

class program_builder {
 public:
  program_builder(const graph_view& g, const plan& p) : g_(g), p_(p) {
    r_.uses = cotangent_uses(g);
    r_.wanted = nodes_with_cotangent(g);
  }

  program build() {
    const int n = g_.size();
    std::vector<int> depth(std::size_t(n), 0);
    for (int i = 0; i < n; ++i)
      if (!g_.nodes[std::size_t(i)].op->placeholder) forward_node(i, depth);
    std::vector<int> back(std::size_t(n), 0);
    for (int i = n - 1; i >= 0; --i)
      if (r_.wanted[std::size_t(i)]) backward_node(i, back);
    link_masks();
    order_tasks();
    if (p_.recompute != recompute_policy::none) add_reruns();
    return std::move(r_);
  }

 private:
  int stage(int i) const { return p_.stage_of[std::size_t(i)]; }

  task& task_at(int s, bool backward, int depth) {
    for (auto& t : r_.tasks)
      if (t.stage == s && t.backward == backward && t.depth == depth) return t;
    r_.tasks.push_back({s, backward, depth, {}, {}, {}, {}});
    return r_.tasks.back();
  }

  void forward_node(int i, std::vector<int>& depth) {
    const node& o = g_.nodes[std::size_t(i)];
    int d = 0;
    for (int in : o.in)
      if (in >= 0 && !g_.nodes[std::size_t(in)].op->placeholder)
        d = (std::max)(d, depth[std::size_t(in)] + (stage(in) != stage(i)));
    depth[std::size_t(i)] = d;
    task_at(stage(i), false, d).nodes.push_back(i);
    for (int in : o.in) {
      if (in < 0 || g_.nodes[std::size_t(in)].op->placeholder || stage(in) == stage(i)) continue;
      if (r_.find_edge(edge_kind::activation, in, -1, stage(i)) >= 0) {
        // Already on its way to this stage; an earlier task may need it first.
        const int e = r_.find_edge(edge_kind::activation, in, -1, stage(i));
        add_unique(task_at(stage(i), false, d).receives, e);
        continue;
      }
      const int e = int(r_.edges.size());
      r_.edges.push_back({edge_kind::activation, in, -1, stage(in), stage(i), -1});
      task_at(stage(in), false, depth[std::size_t(in)]).sends.push_back(e);
      task_at(stage(i), false, d).receives.push_back(e);
    }
  }

  // Node i needs its own cotangent (the sum over all its uses) and, for each input that it sends a cotangent to, the
  // sum over that input's later uses, to which it adds its own.
  void backward_node(int i, std::vector<int>& back) {
    struct need {
      int node, use, source;  ///< the partial sum, and the node that forms it
    };
    std::vector<need> needs;
    const auto& own = r_.uses[std::size_t(i)];
    if (!own.empty()) needs.push_back({i, 0, own[0].node});
    const node& o = g_.nodes[std::size_t(i)];
    for (int k = 0; k < max_inputs; ++k) {
      const int in = o.in[std::size_t(k)];
      if (in < 0) continue;
      const auto& theirs = r_.uses[std::size_t(in)];
      const int u = use_index(theirs, i, k);
      if (u >= 0 && u + 1 < int(theirs.size())) needs.push_back({in, u + 1, theirs[std::size_t(u) + 1].node});
    }
    int d = 0;
    for (const need& x : needs)
      if (x.source != i) d = (std::max)(d, back[std::size_t(x.source)] + (stage(x.source) != stage(i)));
    back[std::size_t(i)] = d;
    task_at(stage(i), true, d).nodes.push_back(i);
    for (const need& x : needs) {
      if (stage(x.source) == stage(i)) continue;
      const int e = int(r_.edges.size());
      r_.edges.push_back({edge_kind::cotangent, x.node, x.use, stage(x.source), stage(i), -1});
      task_at(stage(x.source), true, back[std::size_t(x.source)]).sends.push_back(e);
      task_at(stage(i), true, d).receives.push_back(e);
    }
  }

  void link_masks() {
    for (auto& e : r_.edges)
      if (e.kind == edge_kind::cotangent)
        for (std::size_t f = 0; f < r_.edges.size(); ++f)
          if (r_.edges[f].kind == edge_kind::activation && r_.edges[f].node == e.node && r_.edges[f].from == e.to &&
              r_.edges[f].to == e.from)
            e.forward = int(f);
  }

  void order_tasks() {
    std::stable_sort(r_.tasks.begin(), r_.tasks.end(), [](const task& a, const task& b) {
      return std::tuple(a.backward, a.stage, a.depth) < std::tuple(b.backward, b.stage, b.depth);
    });
    r_.tasks_of_stage.resize(std::size_t(p_.stages()));
    for (std::size_t t = 0; t < r_.tasks.size(); ++t) r_.tasks_of_stage[std::size_t(r_.tasks[t].stage)].push_back(int(t));
  }

  void add_reruns() {
    const flags dropped = dropped_nodes(g_, p_.recompute);
    rerun_finder finder(g_, dropped);
    for (auto& t : r_.tasks)  // those of a stage are in the order in which a micro-batch passes them
      if (t.backward)
        for (std::size_t i = 0; i < t.nodes.size(); ++i)
          finder.before(t.nodes[i], [&](int v) { return stage(v) == t.stage; }, [&](int v) { t.reruns.push_back({v, int(i)}); });
  }

  const graph_view& g_;
  const plan& p_;
  program r_;
};

}  // namespace detail

/// Compiles a checked plan.
inline program compile(const graph_view& g, const plan& p) { return detail::program_builder(g, p).build(); }

}  // namespace fusionllm::inline v0
