// SPDX-License-Identifier: Apache-2.0
// Where each value of a stage lies in a peer's arena. Values that live within one task share one scratch region; the
// others lie in a slot, of which there are as many as micro-batches in flight. Instants count what the stage does for
// one micro-batch: for every task its begin (receiving), its nodes, its end (sending). What is dropped after forward and
// made again in backward has a second place, which is scratch where one task makes and uses it.
#pragma once

#include "../graph/cost.hpp"
#include "../schedule/dispatcher.hpp"
#include "../device/kernel.hpp"
#include "memory.hpp"

namespace fusionllm::inline v0 {

/// Indices of values: outputs of nodes, then partial sums of cotangents (node, use), then saved values of nodes, then
/// outputs and saved values of nodes that run again in backward.
class value_index {
 public:
  value_index() = default;
  value_index(const graph_view& g, const std::vector<std::vector<use>>& uses) : nodes_(g.size()) {
    int next = nodes_;
    for (const auto& u : uses) {
      first_partial_.push_back(next);
      next += int(u.size());
    }
    first_saved_ = next;
    count_ = next + 3 * nodes_;
  }
  int output(int node) const { return node; }
  int partial(int node, int use) const { return first_partial_[std::size_t(node)] + use; }
  int saved(int node) const { return first_saved_ + node; }
  int output_again(int node) const { return first_saved_ + nodes_ + node; }
  int saved_again(int node) const { return first_saved_ + 2 * nodes_ + node; }
  int count() const { return count_; }

 private:
  int nodes_ = 0, first_saved_ = 0, count_ = 0;
  std::vector<int> first_partial_;
};

struct value_place {
  int root = -1;        ///< the value whose memory this one shares (itself, if none)
  bool scratch = false;
  u64 offset = 0;       ///< in the slot, or in the scratch region
};

struct stage_layout {
  value_index index;
  std::vector<value_place> places;
  flags again;          ///< nodes of the stage that run again in backward
  u64 slot_bytes = 0;
  u64 scratch_bytes = 0;
  u64 workspace_bytes = 0;

  /// Where backward finds the output of a node, and its saved values.
  int kept_output(int node) const { return again[std::size_t(node)] ? index.output_again(node) : index.output(node); }
  int kept_saved(int node) const { return again[std::size_t(node)] ? index.saved_again(node) : index.saved(node); }
};

namespace detail {

class layout_builder {
 public:
  layout_builder(const graph_view& g, const program& prog, std::span<const kernel_table* const> kernels, int stage,
                 const sizes& bounds, u64 real_bytes)
      : g_(g), prog_(prog), kernels_(kernels), stage_(stage), bounds_(bounds), real_(real_bytes) {
    layout_.index = value_index(g, prog.uses);
    values_.resize(std::size_t(layout_.index.count()));
    layout_.places.resize(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) layout_.places[i].root = int(i);
  }

  stage_layout build() {
    number_instants();
    for (int t : prog_.tasks_of_stage[std::size_t(stage_)]) {
      if (prog_.tasks[std::size_t(t)].backward) backward_task(prog_.tasks[std::size_t(t)], t);
      else forward_task(prog_.tasks[std::size_t(t)], t);
    }
    merge_aliases();
    place();
    return std::move(layout_);
  }

 private:
  int instant_of(int node, bool backward) const { return at_[std::size_t(node)][backward]; }
  bool local(int node, bool backward) const { return instant_of(node, backward) >= 0; }
  u64 bytes(int node) const { return output_bytes(g_, node, bounds_, real_); }

  void number_instants() {
    at_.assign(g_.nodes.size(), {-1, -1, -1});
    layout_.again.assign(g_.nodes.size(), u8(0));
    int now = 0;
    for (int t : prog_.tasks_of_stage[std::size_t(stage_)]) {
      const task& x = prog_.tasks[std::size_t(t)];
      begins_.push_back(now++);
      in_order(x, [&](int n) { at_[std::size_t(n)][2] = now++, layout_.again[std::size_t(n)] = 1; },
               [&](int n) { at_[std::size_t(n)][x.backward] = now++; });
      ends_.push_back(now++);
    }
    task_position_.assign(prog_.tasks.size(), -1);
    const auto& mine = prog_.tasks_of_stage[std::size_t(stage_)];
    for (std::size_t i = 0; i < mine.size(); ++i) task_position_[std::size_t(mine[i])] = int(i);
  }

  void touch(int value, u64 size, int instant) {
    packed_value& v = values_[std::size_t(value)];
    v.bytes = (std::max)(v.bytes, size);
    if (v.last < v.first) v.first = v.last = instant;
    v.first = (std::min)(v.first, instant);
    v.last = (std::max)(v.last, instant);
  }

  void touch_edges(const task& t, int id) {
    const std::size_t p = std::size_t(task_position_[std::size_t(id)]);
    for (int e : t.receives) touch(value_of(prog_.edges[std::size_t(e)]), bytes(prog_.edges[std::size_t(e)].node), begins_[p]);
    for (int e : t.sends) touch(value_of(prog_.edges[std::size_t(e)]), bytes(prog_.edges[std::size_t(e)].node), ends_[p]);
  }
  int value_of(const edge& e) const {
    return e.kind == edge_kind::activation ? layout_.index.output(e.node) : layout_.index.partial(e.node, e.use);
  }

  void forward_task(const task& t, int id) {
    touch_edges(t, id);
    for (int n : t.nodes) {
      const node& o = g_.nodes[std::size_t(n)];
      const int now = instant_of(n, false);
      touch(layout_.index.output(n), bytes(n), now);
      const node_cost c = cost_of(g_, n, bounds_, real_);
      if (c.saved_bytes) touch(layout_.index.saved(n), c.saved_bytes, now);
      note_workspace(n);
      for (std::size_t k = 0; k < max_inputs; ++k)
        if (o.in[k] >= 0 && !g_.nodes[std::size_t(o.in[k])].op->placeholder)
          touch(layout_.index.output(o.in[k]), bytes(o.in[k]), now);
    }
  }

  void note_workspace(int n) {
    const kernel_table* k = kernels_[std::size_t(n)];
    if (k && k->workspace_bytes) layout_.workspace_bytes = (std::max)(layout_.workspace_bytes, k->workspace_bytes(g_.view(n, bounds_)));
  }

  // A node runs forward a second time, into its second place.
  void rerun_node(int n) {
    const node& o = g_.nodes[std::size_t(n)];
    const int now = at_[std::size_t(n)][2];
    touch(layout_.index.output_again(n), bytes(n), now);
    if (const u64 saved = cost_of(g_, n, bounds_, real_).saved_bytes) touch(layout_.index.saved_again(n), saved, now);
    for (int in : o.in)
      if (in >= 0 && !g_.nodes[std::size_t(in)].op->placeholder) touch(layout_.kept_output(in), bytes(in), now);
  }

  void backward_task(const task& t, int id) {
    touch_edges(t, id);
    for (const rerun& r : t.reruns) rerun_node(r.node);
    for (int n : t.nodes) {
      const node& o = g_.nodes[std::size_t(n)];
      const int now = instant_of(n, true);
      const auto& own = prog_.uses[std::size_t(n)];
      if (!own.empty()) touch(layout_.index.partial(n, 0), bytes(n), now);
      if (o.op->saves_output) touch(layout_.kept_output(n), bytes(n), now);
      const u64 saved = cost_of(g_, n, bounds_, real_).saved_bytes;
      if (saved) touch(layout_.kept_saved(n), saved, now);
      for (int k = 0; k < max_inputs; ++k) {
        const int in = o.in[std::size_t(k)];
        if (in < 0) continue;
        if ((o.op->saves_inputs >> k & 1) && !g_.nodes[std::size_t(in)].op->placeholder)
          touch(layout_.kept_output(in), bytes(in), now);
        const auto& theirs = prog_.uses[std::size_t(in)];
        const int u = use_index(theirs, n, k);
        if (u < 0) continue;
        touch(layout_.index.partial(in, u), bytes(in), now);
        if (u + 1 < int(theirs.size())) touch(layout_.index.partial(in, u + 1), bytes(in), now);
      }
    }
  }

  // A cotangent that an operator passes on unchanged is the same memory; so is what an operator may write in place.
  void merge_aliases() {
    for (int t : prog_.tasks_of_stage[std::size_t(stage_)]) {
      if (!prog_.tasks[std::size_t(t)].backward) continue;
      for (int n : prog_.tasks[std::size_t(t)].nodes) alias_backward(n);
    }
    for (int t : prog_.tasks_of_stage[std::size_t(stage_)]) {
      if (prog_.tasks[std::size_t(t)].backward) continue;
      for (int n : prog_.tasks[std::size_t(t)].nodes) alias_in_place(n, layout_.index.output(n), false);
    }
    for (int t : prog_.tasks_of_stage[std::size_t(stage_)])
      for (const rerun& r : prog_.tasks[std::size_t(t)].reruns) alias_in_place(r.node, layout_.index.output_again(r.node), true);
  }

  void alias_backward(int n) {
    const node& o = g_.nodes[std::size_t(n)];
    for (int k = 0; k < max_inputs; ++k) {
      const int in = o.in[std::size_t(k)];
      if (in < 0) continue;
      const auto& theirs = prog_.uses[std::size_t(in)];
      const int u = use_index(theirs, n, k);
      if (u < 0 || u + 1 != int(theirs.size())) continue;
      if ((o.op->passes_cotangent >> k & 1) && !prog_.uses[std::size_t(n)].empty())
        merge(layout_.index.partial(in, u), layout_.index.partial(n, 0));
      else if (k == 0 && o.op->reuses_input && u == 0 && local(in, false) &&
               values_[std::size_t(layout_.kept_output(in))].last == instant_of(n, true))
        merge(layout_.index.partial(in, u), layout_.kept_output(in));
    }
  }

  void alias_in_place(int n, int value, bool again) {
    const node& o = g_.nodes[std::size_t(n)];
    const int in = o.in[0];
    if (!o.op->in_place || in < 0 || g_.nodes[std::size_t(in)].op->placeholder) return;
    if (o.in[1] == in || bytes(in) != bytes(n)) return;
    const int root = find(again ? layout_.kept_output(in) : layout_.index.output(in));
    if (values_[std::size_t(root)].last == at_[std::size_t(n)][again ? 2 : 0]) merge(value, root);
  }

  int find(int v) const {
    while (layout_.places[std::size_t(v)].root != v) v = layout_.places[std::size_t(v)].root;
    return v;
  }
  void merge(int value, int into) {
    const int a = find(value), b = find(into);
    if (a == b) return;
    layout_.places[std::size_t(a)].root = b;
    packed_value &x = values_[std::size_t(a)], &y = values_[std::size_t(b)];
    y.bytes = (std::max)(x.bytes, y.bytes);
    y.first = (std::min)(x.first, y.first);
    y.last = (std::max)(x.last, y.last);
    x.last = x.first - 1;
  }

  bool within_one_task(const packed_value& v) const {
    for (std::size_t i = 0; i < begins_.size(); ++i)
      if (v.first >= begins_[i] && v.last <= ends_[i]) return true;
    return false;
  }

  void place() {
    std::vector<packed_value*> slot, scratch;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (find(int(i)) != int(i) || !values_[i].alive()) continue;
      layout_.places[i].scratch = within_one_task(values_[i]);
      (layout_.places[i].scratch ? scratch : slot).push_back(&values_[i]);
    }
    layout_.slot_bytes = pack(slot);
    layout_.scratch_bytes = pack(scratch);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const int root = find(int(i));
      layout_.places[i].root = root;
      layout_.places[i].scratch = layout_.places[std::size_t(root)].scratch;
      layout_.places[i].offset = values_[std::size_t(root)].offset;
    }
  }

  const graph_view& g_;
  const program& prog_;
  std::span<const kernel_table* const> kernels_;
  int stage_;
  sizes bounds_;
  u64 real_;
  stage_layout layout_;
  std::vector<packed_value> values_;
  std::vector<std::array<int, 3>> at_;  ///< node: instants of forward, backward, second forward; -1: none here
  std::vector<int> begins_, ends_, task_position_;
};

}  // namespace detail

/// Lays out what `stage` holds of one micro-batch of at most `bounds`.
inline stage_layout lay_out(const graph_view& g, const program& prog, std::span<const kernel_table* const> kernels,
                            int stage, const sizes& bounds, u64 real_bytes) {
  return detail::layout_builder(g, prog, kernels, stage, bounds, real_bytes).build();
}

}  // namespace fusionllm::inline v0
