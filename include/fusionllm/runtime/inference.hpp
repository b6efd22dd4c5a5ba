// SPDX-License-Identifier: Apache-2.0
// Forward of a slice of the graph on one device, or of one stage's share of it, without training: for predictions and
// held-out losses. Values share an arena by their live ranges; parameters are the caller's. A decoder computes the next
// times of sequences only: keys and values of those before stay in its state.
#pragma once

#include <functional>

#include "../graph/cost.hpp"
#include "forward_program.hpp"
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
  using weight_of = std::function<void*(int)>;

  /// The nodes that `target` needs, for at most `bounds`. `weight(parameter)` gives each parameter's memory.
  inference(const graph_view& g, int target, const device_binding& device, const sizes& bounds, weight_of weight,
            inference_kind kind = inference_kind::whole)
      : inference(g, whole_share(g, target), device, bounds, std::move(weight), kind) {}
  /// One stage's share of them. What comes from other stages is put where value() says, before the part that needs it.
  inference(const graph_view& g, forward_share share, const device_binding& device, const sizes& bounds, weight_of weight,
            inference_kind kind)
      : g_(g), share_(std::move(share)), device_(device), memory_(device.context->memory()), bounds_(bounds), weight_(std::move(weight)),
        keep_(slice(g, share_.target)) {
    if (memory_) inputs_.resize(g.nodes.size());
    if (kind == inference_kind::decoding) make_states();
    values_.resize(g.nodes.size());
    saved_.resize(g.nodes.size());
    u64 workspace = 0;
    int now = 0;  // position in the order of execution
    for (const auto& part : share_.parts) {
      for (int i : part.receives)
        if (!values_[std::size_t(i)].alive()) values_[std::size_t(i)] = {bytes_of(i), now, now, 0};
      for (int i : part.nodes) {
        expect_kernel(g, device, i);
        const node& o = g.nodes[std::size_t(i)];
        const node_cost c = cost_of(g, i, bounds, size_of(device.real));
        values_[std::size_t(i)] = {c.output_bytes, now, now, 0};
        saved_[std::size_t(i)] = {c.saved_bytes, now, now, 0};
        workspace = (std::max)(workspace, device.kernels[std::size_t(i)]->workspace_bytes(g.view(i, bounds)));
        for (int in : o.in)
          if (in >= 0 && !g.nodes[std::size_t(in)].op->placeholder) values_[std::size_t(in)].last = now;
        ++now;
      }
      for (int i : part.sends) values_[std::size_t(i)].last = now - 1;
    }
    if (!g.nodes[std::size_t(target())].op->placeholder && values_[std::size_t(target())].alive()) values_[std::size_t(target())].last = now;
    std::vector<packed_value*> all;
    for (auto* list : {&values_, &saved_})
      for (auto& v : *list) all.push_back(&v);
    workspace_at_ = pack(all);
    arena_ = memory_block(workspace_at_ + workspace, memory_);
  }

  /// Computes the target for `s` within the bounds; the result, in host memory, stays until the next run. `inputs` by node. A decoder
  /// goes on after `past` times, which earlier runs for as many sequences computed.
  tensor_ref run(const sizes& s, std::span<const void* const> inputs, double loss_scale = 1, i64 past = 0) {
    for (std::size_t p = 0; p < share_.parts.size(); ++p) run_part(p, s, inputs, loss_scale, past);
    return seen(target(), s, inputs);
  }
  /// One part of the share, of which those before have run for the same.
  void run_part(std::size_t part, const sizes& s, std::span<const void* const> inputs, double loss_scale, i64 past) {
    for (int i : share_.parts[part].nodes) {
      const node& o = g_.nodes[std::size_t(i)];
      kernel_args a;
      a.op = &o;
      a.mode = pass::inference;
      for (std::size_t k = 0; k < max_inputs; ++k)
        if (o.in[k] >= 0) a.in[k] = operand(o.in[k], s, inputs);
      for (std::size_t k = 0; k < max_params; ++k)
        if (o.params[k] >= 0) a.param[k] = {weight_(o.params[k]), g_.params[std::size_t(o.params[k])].dims, weights_beside(device_.real)};
      a.out = value(i, s, inputs);
      a.saved = arena_.data() + saved_[std::size_t(i)].offset;
      a.workspace = arena_.data() + workspace_at_;
      a.loss_scale = loss_scale;
      a.past = past;
      a.longest = bounds_.time;
      if (!states_.empty() && states_[std::size_t(i)].size()) a.state = states_[std::size_t(i)].data();
      device_.kernels[std::size_t(i)]->forward(*device_.context, a);
    }
  }
  /// A node's output as the host sees it, once all before has run. Of a device with memory of its own it is a copy, which
  /// stays until the next call.
  tensor_ref seen(int i, const sizes& s, std::span<const void* const> inputs) {
    tensor_ref x = value(i, s, inputs);
    if (!memory_ || g_.nodes[std::size_t(i)].op->placeholder) return x;
    seen_.resize(std::size_t(x.count()) * size_of(x.type));
    memory_->read(seen_.data(), x.data, seen_.size());
    x.data = seen_.data();
    return x;
  }
  /// Puts what another stage has computed where value() says.
  void put(const tensor_ref& x, const void* from) {
    const std::size_t bytes = std::size_t(x.count()) * size_of(x.type);
    if (memory_) memory_->upload(x.data, from, bytes);
    else std::memcpy(x.data, from, bytes);
  }
  /// A node's output: computed here, from another stage, or one of `inputs`, which are the host's.
  tensor_ref value(int i, const sizes& s, std::span<const void* const> inputs) const {
    const node& o = g_.nodes[std::size_t(i)];
    void* data = o.op->placeholder ? const_cast<void*>(inputs[std::size_t(i)]) : arena_.data() + values_[std::size_t(i)].offset;
    return {data, o.out.resolve(s), type_of(g_, i, device_.real)};
  }

  int target() const { return share_.target; }
  const sizes& bounds() const { return bounds_; }
  /// Nodes that the target needs, here or elsewhere.
  const flags& needed() const { return keep_; }

 private:
  /// What a kernel reads.
  tensor_ref operand(int i, const sizes& s, std::span<const void* const> inputs) {
    tensor_ref x = value(i, s, inputs);
    if (!memory_ || !g_.nodes[std::size_t(i)].op->placeholder) return x;
    const u64 bytes = u64(x.count()) * size_of(x.type);
    device_array& to = inputs_[std::size_t(i)];
    to.grow(*memory_, bytes);
    memory_->upload(to.data(), x.data, bytes);
    x.data = to.data();
    return x;
  }
  u64 bytes_of(int i) const { return output_bytes(g_, i, bounds_, size_of(device_.real)); }
  void make_states() {
    if (!decodable(g_, target())) fail(errc::model, "the model's output is not computed time by time, it cannot be decoded");
    states_.resize(g_.nodes.size());
    for (const auto& part : share_.parts)
      for (int i : part.nodes)
        if (const u64 bytes = cost_of(g_, i, bounds_, size_of(device_.real)).state_bytes)
          states_[std::size_t(i)] = memory_block(bytes, memory_);
  }

  graph_view g_;
  forward_share share_;
  device_binding device_;
  device_memory* memory_;
  sizes bounds_;
  weight_of weight_;
  flags keep_;
  std::vector<packed_value> values_, saved_;
  u64 workspace_at_ = 0;
  memory_block arena_;
  std::vector<device_array> inputs_;  ///< by node, of a device with memory of its own
  std::vector<std::byte> seen_;
  std::vector<memory_block> states_;  ///< by node, of a decoder
};

}  // namespace fusionllm::inline v0
