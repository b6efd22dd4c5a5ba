// SPDX-License-Identifier: Apache-2.0
// Forward of a slice of the graph on one device, without training: for predictions and held-out losses. Values share an
// arena by their live ranges; parameters are the caller's. A decoder computes the next times of sequences only: keys and
// values of those before stay in its state.
#pragma once

#include <functional>

#include "../graph/cost.hpp"
#include "../graph/slice.hpp"
#include "memory.hpp"
#include "stage_compute.hpp"

namespace fusionllm::inline v0 {

/// Whether `target` can be computed time by time: it needs nothing but operators that look at one time of
/// (batch, time, ...), and at what they kept of those before.
inline bool decodable(const graph_view& g, int target) {
  const flags needed = slice(g, target);
  for (int i = 0; i <= target; ++i) {
    const node& o = g.nodes[std::size_t(i)];
    if (!needed[std::size_t(i)]) continue;
    bool once = o.out.rank >= 2 && o.out.d[0] == batch && o.out.d[1] == time;
    for (int axis = 2; axis < o.out.rank; ++axis) once &= o.out.d[std::size_t(axis)] >= 0;
    if (!once || !(o.op->placeholder || o.op->per_time)) return false;
  }
  return true;
}

enum class inference_kind : u8 { whole, decoding };

class inference {
 public:
  /// The nodes that `target` needs, for at most `bounds`. `weight(parameter)` gives each parameter's memory.
  inference(const graph_view& g, int target, const device_binding& device, const sizes& bounds,
            std::function<void*(int)> weight, inference_kind kind = inference_kind::whole)
      : g_(g), target_(target), device_(device), bounds_(bounds), weight_(std::move(weight)), keep_(slice(g, target)) {
    if (kind == inference_kind::decoding) make_states();
    values_.resize(g.nodes.size());
    saved_.resize(g.nodes.size());
    u64 workspace = 0;
    for (int i = 0; i < g.size(); ++i) {
      const node& o = g.nodes[std::size_t(i)];
      if (!keep_[std::size_t(i)] || o.op->placeholder) continue;
      const node_cost c = cost_of(g, i, bounds, size_of(device.real));
      values_[std::size_t(i)] = {c.output_bytes, i, i == target ? g.size() : i, 0};
      saved_[std::size_t(i)] = {c.saved_bytes, i, i, 0};
      workspace = (std::max)(workspace, device.kernels[std::size_t(i)]->workspace_bytes(g.view(i, bounds)));
      for (int in : o.in)
        if (in >= 0 && values_[std::size_t(in)].alive()) values_[std::size_t(in)].last = (std::max)(values_[std::size_t(in)].last, i);
    }
    std::vector<packed_value*> all;
    for (auto* list : {&values_, &saved_})
      for (auto& v : *list) all.push_back(&v);
    workspace_at_ = pack(all);
    arena_ = memory_block(workspace_at_ + workspace);
  }

  /// Computes the target for `s` within the bounds; the result stays until the next run. `inputs` by node. A decoder
  /// goes on after `past` times, which earlier runs for as many sequences computed.
  tensor_ref run(const sizes& s, std::span<const void* const> inputs, double loss_scale = 1, i64 past = 0) {
    for (int i = 0; i <= target_; ++i) {
      const node& o = g_.nodes[std::size_t(i)];
      if (!keep_[std::size_t(i)] || o.op->placeholder) continue;
      kernel_args a;
      a.op = &o;
      a.mode = pass::inference;
      for (std::size_t k = 0; k < max_inputs; ++k)
        if (o.in[k] >= 0) a.in[k] = value(o.in[k], s, inputs);
      for (std::size_t k = 0; k < max_params; ++k)
        if (o.params[k] >= 0) a.param[k] = {weight_(o.params[k]), g_.params[std::size_t(o.params[k])].dims, device_.real};
      a.out = value(i, s, inputs);
      a.saved = arena_.data() + saved_[std::size_t(i)].offset;
      a.workspace = arena_.data() + workspace_at_;
      a.loss_scale = loss_scale;
      a.past = past;
      a.longest = bounds_.time;
      if (!states_.empty() && states_[std::size_t(i)].size()) a.state = states_[std::size_t(i)].data();
      device_.kernels[std::size_t(i)]->forward(*device_.context, a);
    }
    return value(target_, s, inputs);
  }

  const sizes& bounds() const { return bounds_; }
  const flags& needed() const { return keep_; }

 private:
  void make_states() {
    if (!decodable(g_, target_)) fail(errc::model, "the model's output is not computed time by time, it cannot be decoded");
    states_.resize(g_.nodes.size());
    for (int i = 0; i <= target_; ++i)
      if (const u64 bytes = keep_[std::size_t(i)] ? cost_of(g_, i, bounds_, size_of(device_.real)).state_bytes : 0)
        states_[std::size_t(i)] = memory_block(bytes);
  }
  tensor_ref value(int i, const sizes& s, std::span<const void* const> inputs) const {
    const node& o = g_.nodes[std::size_t(i)];
    const dtype type = o.type == element::i32 ? dtype::int32 : device_.real;
    void* data = o.op->placeholder ? const_cast<void*>(inputs[std::size_t(i)]) : arena_.data() + values_[std::size_t(i)].offset;
    return {data, o.out.resolve(s), type};
  }

  graph_view g_;
  int target_;
  device_binding device_;
  sizes bounds_;
  std::function<void*(int)> weight_;
  flags keep_;
  std::vector<packed_value> values_, saved_;
  u64 workspace_at_ = 0;
  memory_block arena_;
  std::vector<memory_block> states_;  ///< by node, of a decoder
};

}  // namespace fusionllm::inline v0
