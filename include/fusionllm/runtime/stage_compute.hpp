// SPDX-License-Identifier: Apache-2.0
// What a peer computes: one task of one micro-batch at a time, on the device's thread. Frames of received edges are
// decoded into the arena, nodes run in order, frames of sent edges are encoded. Every output and cotangent is searched for
// infinities and NaNs: a tensor that has one is not sent, the frame is empty, and whoever gets it goes on with zeros, so
// that nobody waits while the step is given up. Nothing is allocated once buffers have their size.
//
// A device with memory of its own is given all of a task at once; it is waited for only where the task sends something.
// What it finds and the losses are read in collect().
#pragma once

#include <functional>

#include "../compress/device_codec.hpp"
#include "fault.hpp"
#include "host_copies.hpp"
#include "micro_batches.hpp"
#include "parameter_store.hpp"
#include "stage_layout.hpp"

namespace fusionllm::inline v0 {

/// Everything that a device is to the runtime: its kernels for a model's nodes, and functions on vectors.
struct device_binding {
  std::span<const kernel_table* const> kernels;
  const vector_functions* vectors = nullptr;
  device_context* context = nullptr;
  dtype real = dtype::f32;
};

/// Error: plan, for a node that the device has no kernel for.
inline void expect_kernel(const graph_view& g, const device_binding& device, int n) {
  const node& o = g.nodes[std::size_t(n)];
  if (!device.kernels[std::size_t(n)] && !o.op->placeholder)
    fail(errc::plan, "node ", n, " (", o.op->name, o.scope.length ? " in " : "", o.scope.view(), ") is planned for a device that has no kernel for the operator ",
         o.op->name, ": plan it on a cpu peer, or bring a kernel");
}

/// One step's data: for each model input (by node) the whole batch in host memory, null where this peer needs none.
struct step_data {
  u64 step = 0;
  i64 rows = 0;                        ///< sequences (or samples) in the batch
  i64 time = 1;
  std::vector<const void*> inputs;     ///< by node
};

/// Who makes codecs: one for each edge, for its link and direction.
using codec_factory = std::function<std::unique_ptr<codec>(const edge&)>;

/// Called with a node's output (backward = false) or its cotangent, on the device's thread, where a caller asked to see.
using value_observer = std::function<void(int node, int micro_batch, bool backward, const tensor_ref&)>;

class stage_compute {
 public:
  stage_compute(const graph_view& g, const plan& p, const program& prog, int self, const device_binding& device,
                const sizes& bounds, u64 seed, parameter_store& store, const codec_factory& make_codec, int slots)
      : g_(g), p_(p), prog_(prog), device_(device), seed_(seed), store_(store), stage_(p.stage_of_peer(self)) {
    for (int i = 0; i < g.size(); ++i)
      if (p.stage_of[std::size_t(i)] == stage_) expect_kernel(g, device, i);
    memory_ = device.context->memory();
    layout_ = lay_out(g, prog, device.kernels, stage_, bounds, size_of(device.real));
    first_group_ = first_group(self);
    arena_ = memory_block(layout_.scratch_bytes + layout_.workspace_bytes + u64(slots) * layout_.slot_bytes + memory_alignment, memory_);
    slots_ = slots;
    codecs_.resize(prog.edges.size());
    masks_.resize(prog.edges.size() * std::size_t(slots));
    for (std::size_t e = 0; e < prog.edges.size(); ++e)
      if (prog.edges[e].from == stage_ || prog.edges[e].to == stage_) codecs_[e] = make_codec(prog.edges[e]);
    if (memory_) prepare_device();
    find_fresh_receives();
    losses_.assign(std::size_t(p.micro_batches), 0.0);
    loss_values_ = shared_numbers<double>(memory_, losses_.size());
    found_ = shared_numbers<u32>(memory_, losses_.size() * g.nodes.size() * 2);
    sent_found_ = shared_numbers<u32>(memory_, prog.edges.size());
  }

  /// Takes effect with the next run(). `data` must stay until the step ends.
  void begin_step(const step_data& data, double loss_scale) {
    data_ = &data;
    loss_scale_ = loss_scale;
    clear_gradients_ = true;
    std::fill(losses_.begin(), losses_.end(), 0.0);
    loss_values_.clear();
    found_.clear();
    first_fault_ = {};
  }
  /// After the last task, on the device's thread: waits for the device, and takes in the losses and what was not finite.
  void collect() {
    settle(*device_.context);
    const std::size_t nodes = g_.nodes.size();
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (!found_[i]) continue;
      const int m = int(i / (2 * nodes)), n = int(i / 2 % nodes);
      const fault_kind kind = i % 2 ? fault_kind::cotangent : n == g_.loss ? fault_kind::loss : fault_kind::activation;
      note(kind, m, n, p_.peer_of(stage_, m));
    }
    for (std::size_t m = 0; m < losses_.size(); ++m) losses_[m] = loss_values_[m];
  }
  /// Parameters whose gradients nobody wants, by number.
  void leave_out(flags frozen) { frozen_ = std::move(frozen); }
  /// The first fault of the step that this peer knows of.
  const fault& first_fault() const { return first_fault_; }
  void note(const fault& f) {
    if (earlier(f, first_fault_)) first_fault_ = f;
  }

  /// Edges that `t` has to decode: it is the first of its stage's tasks that needs them.
  const std::vector<int>& fresh_receives(int t) const { return fresh_[std::size_t(t)]; }

  /// Runs a task of micro-batch `ref.micro_batch`, the `position`th of this peer. `in`: frames of fresh_receives, in
  /// order; `out`: where the frames of the task's sends go, in order. Errors: protocol.
  void run(task_ref ref, int position, std::span<const const_byte_span> in, std::span<std::vector<std::byte>* const> out) {
    if (clear_gradients_) begin_work();
    const task& t = prog_.tasks[std::size_t(ref.task)];
    micro_batch_ = ref.micro_batch;
    slot_ = position % slots_;
    const row_range rows = rows_of(data_->rows, p_.micro_batches, micro_batch_);
    sizes_ = {rows.count(), data_->time};
    first_row_ = rows.begin;
    for (std::size_t i = 0; i < in.size(); ++i) decode(fresh_[std::size_t(ref.task)][i], in[i]);
    if (sizes_.batch > 0)
      in_order(t, [&](int n) { forward_again(n); }, [&](int n) { t.backward ? backward(n) : forward(n); });
    if (!memory_)
      for (std::size_t i = 0; i < out.size(); ++i) encode(t.sends[i], *out[i]);
    else if (!out.empty()) encode_on_device(t.sends, out);
  }

  /// Losses of this peer's micro-batches, each its share of the batch's mean; after collect().
  const std::vector<double>& losses() const { return losses_; }
  bool has_loss() const { return g_.loss >= 0 && p_.stage_of[std::size_t(g_.loss)] == stage_; }
  void observe(value_observer o) { observer_ = std::move(o); }
  u64 arena_bytes() const { return arena_.size(); }
  i64 max_frame_bytes(int e, const sizes& bounds) const {
    const extents d = g_.nodes[std::size_t(prog_.edges[std::size_t(e)].node)].out.resolve(bounds);
    return codecs_[std::size_t(e)]->max_encoded_bytes(d.rows(), d.last(), type_of(prog_.edges[std::size_t(e)].node));
  }
  u64 raw_bytes(int e, const sizes& s) const {
    return output_bytes(g_, prog_.edges[std::size_t(e)].node, s, size_of(device_.real));
  }
  const codec* codec_of_edge(int e) const { return codecs_[std::size_t(e)].get(); }
  sizes sizes_of(int micro_batch) const {
    return {rows_of(data_->rows, p_.micro_batches, micro_batch).count(), data_->time};
  }

 private:
  int first_group(int self) const {
    const auto& replicas = p_.peers[std::size_t(stage_)];
    int r = 0;
    while (replicas[std::size_t(r)] != self) ++r;
    return r * p_.groups / int(replicas.size());
  }

  void find_fresh_receives() {
    fresh_.resize(prog_.tasks.size());
    std::vector<u8> seen(prog_.edges.size(), 0);
    for (int t : prog_.tasks_of_stage[std::size_t(stage_)])
      for (int e : prog_.tasks[std::size_t(t)].receives) {
        if (!seen[std::size_t(e)]) fresh_[std::size_t(t)].push_back(e);
        seen[std::size_t(e)] = 1;
      }
  }

  void prepare_device() {
    device_masks_.resize(masks_.size());
    inputs_.resize(g_.nodes.size());
    for (const auto& c : codecs_)
      device_codecs_.push_back(c ? std::make_unique<device_codec>(*c, *device_.context->packing()) : nullptr);
  }
  void begin_work() {
    clear_gradients_ = false;
    store_.to_device();
    for (auto& u : store_.uses())
      for (std::byte* x : u.groups)
        device_.vectors->zero(*device_.context, x, g_.params[std::size_t(u.parameter)].count() * size_of(weights_beside(device_.real)));
    if (!memory_) return;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!data_->inputs[i]) continue;
      const u64 bytes = u64(g_.nodes[i].out.resolve({data_->rows, data_->time}).count()) * size_of(type_of(int(i)));
      inputs_[i].grow(*memory_, bytes);
      memory_->upload(inputs_[i].data(), data_->inputs[i], bytes);
    }
  }

  dtype type_of(int node) const { return fusionllm::type_of(g_, node, device_.real); }  // an fp32 loss fits the place of 16 bits

  std::byte* at(int value) const {
    const value_place& p = layout_.places[std::size_t(value)];
    std::byte* base = arena_.data();
    if (p.scratch) return base + p.offset;
    return base + layout_.scratch_bytes + layout_.workspace_bytes + u64(slot_) * layout_.slot_bytes + p.offset;
  }
  tensor_ref tensor(int value, int node) const {
    return {at(value), g_.nodes[std::size_t(node)].out.resolve(sizes_), type_of(node)};
  }
  tensor_ref output(int node) const {
    if (!g_.nodes[std::size_t(node)].op->placeholder) return tensor(layout_.index.output(node), node);
    const extents whole = g_.nodes[std::size_t(node)].out.resolve({1, sizes_.time});
    const u64 row = u64(whole.count()) * size_of(type_of(node));
    auto* base = memory_ ? inputs_[std::size_t(node)].data() : static_cast<std::byte*>(const_cast<void*>(data_->inputs[std::size_t(node)]));
    return {base ? base + u64(first_row_) * row : nullptr, g_.nodes[std::size_t(node)].out.resolve(sizes_), type_of(node)};
  }

  // Where backward finds a value, which a node that runs again has made a second time.
  tensor_ref kept_output(int node) const {
    return layout_.again[std::size_t(node)] ? tensor(layout_.index.output_again(node), node) : output(node);
  }

  kernel_args arguments(int n, int saved) const {
    const node& o = g_.nodes[std::size_t(n)];
    kernel_args a;
    a.op = &o;
    a.mode = pass::training;
    for (std::size_t k = 0; k < max_params; ++k)
      if (o.params[k] >= 0)
        a.param[k] = {store_.find(o.params[k])->weight, g_.params[std::size_t(o.params[k])].dims, weights_beside(device_.real)};
    a.saved = at(saved);
    a.workspace = arena_.data() + layout_.scratch_bytes;
    a.key = {seed_, data_->step, u32(micro_batch_), u32(o.traced_id)};
    a.loss_scale = loss_scale_;
    return a;
  }

  void forward(int n) {
    const node& o = g_.nodes[std::size_t(n)];
    kernel_args a = arguments(n, layout_.index.saved(n));
    for (std::size_t k = 0; k < max_inputs; ++k)
      if (o.in[k] >= 0) a.in[k] = output(o.in[k]);
    a.out = output(n);
    device_.kernels[std::size_t(n)]->forward(*device_.context, a);
    if (observer_) show(n, false, a.out);
    search(n, false, a.out);
    if (n == g_.loss) device_.vectors->widen(*device_.context, a.out.type, a.out.data, loss_values_.data() + micro_batch_);
  }
  void forward_again(int n) {
    const node& o = g_.nodes[std::size_t(n)];
    kernel_args a = arguments(n, layout_.index.saved_again(n));
    for (std::size_t k = 0; k < max_inputs; ++k)
      if (o.in[k] >= 0) a.in[k] = kept_output(o.in[k]);
    a.out = kept_output(n);
    device_.kernels[std::size_t(n)]->forward(*device_.context, a);
  }

  void search(int n, bool backward, const tensor_ref& x) {
    if (x.type != dtype::int32) device_.vectors->search(*device_.context, x.type, x.data, x.count(), found_.data() + place_of(n, backward));
  }
  std::size_t place_of(int n, bool backward) const { return (std::size_t(micro_batch_) * g_.nodes.size() + std::size_t(n)) * 2 + backward; }
  void note(fault_kind kind, int micro_batch, int n, int peer) { note(fault{kind, u32(micro_batch), u32(n), fault::no, u32(peer)}); }
  void show(int n, bool backward, tensor_ref x) {
    if (memory_) {
      shown_.resize(std::size_t(x.count()) * size_of(x.type));
      memory_->read(shown_.data(), x.data, shown_.size());
      x.data = shown_.data();
    }
    observer_(n, micro_batch_, backward, x);
  }

  void backward(int n) {
    const node& o = g_.nodes[std::size_t(n)];
    kernel_args a = arguments(n, layout_.kept_saved(n));
    for (std::size_t k = 0; k < max_inputs; ++k)
      if (o.in[k] >= 0 && (o.op->saves_inputs >> k & 1)) a.in[k] = kept_output(o.in[k]);
    if (o.op->saves_output) a.out = kept_output(n);
    if (!prog_.uses[std::size_t(n)].empty()) a.d_out = tensor(layout_.index.partial(n, 0), n);
    if (observer_ && a.d_out) show(n, true, a.d_out);
    if (a.d_out) search(n, true, a.d_out);
    backward_inputs(n, a);
    const kernel_table& k = *device_.kernels[std::size_t(n)];
    if (!k.backward_weight || o.param_count() == 0 || all_frozen(o)) return;
    a.statistic_share = statistic_share(o);
    const int group = p_.group_of(micro_batch_) - first_group_;
    for (std::size_t i = 0; i < max_params; ++i)
      if (o.params[i] >= 0)
        a.d_param[i] = {store_.find_use({n, int(i)})->groups[std::size_t(group)],
                        g_.params[std::size_t(o.params[i])].dims, weights_beside(device_.real)};
    k.backward_weight(*device_.context, a);
  }

  bool is_frozen(int parameter) const { return !frozen_.empty() && frozen_[std::size_t(parameter)]; }
  bool all_frozen(const node& o) const {
    for (int p : o.params)
      if (p >= 0 && !is_frozen(p)) return false;
    return true;
  }

  // What is left at the end of the step of this micro-batch's value; the statistics of a node have one momentum.
  double statistic_share(const node& o) const {
    for (int p : o.params)
      if (p >= 0 && !g_.params[std::size_t(p)].trained()) {
        const double momentum = g_.params[std::size_t(p)].momentum;
        return momentum * kept(momentum, filled(data_->rows, p_.micro_batches) - 1 - micro_batch_);
      }
    return 0;
  }

  // The cotangent of each input, added to the sum over that input's later uses.
  void backward_inputs(int n, kernel_args& a) {
    const node& o = g_.nodes[std::size_t(n)];
    const kernel_table& kernels = *device_.kernels[std::size_t(n)];
    std::array<tensor_ref, max_inputs> rest{};
    bool any = false;
    for (int k = max_inputs - 1; k >= 0; --k) {
      const int in = o.in[std::size_t(k)];
      if (in < 0) continue;
      const auto& uses = prog_.uses[std::size_t(in)];
      const int u = detail::use_index(uses, n, k);
      if (u < 0) continue;
      const tensor_ref own = tensor(layout_.index.partial(in, u), in);
      const bool last = u + 1 == int(uses.size());
      const tensor_ref later = last ? tensor_ref{} : tensor(layout_.index.partial(in, u + 1), in);
      if (o.op->passes_cotangent >> k & 1) {
        if (later) device_.vectors->add(*device_.context, own.type, own.data, later.data, a.d_out.data, own.count());
        continue;
      }
      a.d_in[std::size_t(k)] = own;
      any = true;
      if (!later) continue;
      if (kernels.adds_partial && uses[std::size_t(u) + 1].node != n) a.d_partial[std::size_t(k)] = later;
      else rest[std::size_t(k)] = later;
    }
    if (any) kernels.backward_input(*device_.context, a);
    for (int k = max_inputs - 1; k >= 0; --k)
      if (const tensor_ref& later = rest[std::size_t(k)]; later) {
        const tensor_ref& own = a.d_in[std::size_t(k)];
        device_.vectors->add(*device_.context, own.type, own.data, later.data, own.data, own.count());
      }
  }

  mask& mask_of(int e) { return masks_[std::size_t(e) * std::size_t(slots_) + std::size_t(slot_)]; }
  link_context context_of(const edge& e) {
    return {e.kind == edge_kind::cotangent && e.forward >= 0 ? &mask_of(e.forward) : nullptr, nullptr};
  }
  tensor_ref tensor_of(const edge& e) const {
    return tensor(e.kind == edge_kind::activation ? layout_.index.output(e.node) : layout_.index.partial(e.node, e.use), e.node);
  }

  void decode(int id, const_byte_span frame) {
    const edge& e = prog_.edges[std::size_t(id)];
    const tensor_ref x = tensor_of(e);
    if (frame.empty()) {
      device_.vectors->zero(*device_.context, x.data, u64(x.count()) * size_of(x.type));
      return keep_all(id, x), note(fault_of(e), micro_batch_, e.node, p_.peer_of(e.from, micro_batch_));
    }
    try {
      if (memory_)
        return device_codecs_[std::size_t(id)]->decode(frame, tensor_out{x.data, x.type, x.dims.rows(), x.dims.last()}, device_forward(e),
                                                       e.kind == edge_kind::activation ? &device_mask_of(id) : nullptr);
      codecs_[std::size_t(id)]->decode(frame, tensor_out{x.data, x.type, x.dims.rows(), x.dims.last()}, context_of(e),
                                       e.kind == edge_kind::activation ? &mask_of(id) : nullptr);
    } catch (const error& why) {
      explain(e, "received from peer ", p_.peer_of(e.from, micro_batch_), why);
    }
  }
  static fault_kind fault_of(const edge& e) { return e.kind == edge_kind::activation ? fault_kind::activation : fault_kind::cotangent; }
  [[noreturn]] void explain(const edge& e, const char* how, int peer, const error& why) const {
    const node& o = g_.nodes[std::size_t(e.node)];
    fail(why.code(), "the ", e.kind == edge_kind::activation ? "output" : "cotangent", " of node ", e.node, " (", o.scope.view(), ' ',
         o.op->name, "), ", how, peer, " in step ", data_->step, ", micro-batch ", micro_batch_, ": ", why.what());
  }
  void encode(int id, std::vector<std::byte>& frame) {
    const edge& e = prog_.edges[std::size_t(id)];
    const tensor_ref x = tensor_of(e);
    try {
      codecs_[std::size_t(id)]->encode(tensor_in{x.data, x.type, x.dims.rows(), x.dims.last()}, context_of(e), frame,
                                       e.kind == edge_kind::activation ? &mask_of(id) : nullptr);
    } catch (const error& why) {
      if (why.code() == errc::numeric) return poison(id, x, frame);
      explain(e, "to be sent to peer ", p_.peer_of(e.to, micro_batch_), why);
    }
  }
  // All are packed before the one wait.
  void encode_on_device(const std::vector<int>& sends, std::span<std::vector<std::byte>* const> out) {
    for (int id : sends) {
      const edge& e = prog_.edges[std::size_t(id)];
      const tensor_ref x = tensor_of(e);
      sent_found_[std::size_t(id)] = 0;
      device_.vectors->search(*device_.context, x.type, x.data, x.count(), sent_found_.data() + id);
      device_codecs_[std::size_t(id)]->encode(tensor_in{x.data, x.type, x.dims.rows(), x.dims.last()}, device_forward(e),
                                              e.kind == edge_kind::activation ? &device_mask_of(id) : nullptr);
    }
    memory_->settle();
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const int id = sends[i];
      const edge& e = prog_.edges[std::size_t(id)];
      if (sent_found_[std::size_t(id)]) {
        poison(id, tensor_of(e), *out[i]);
        continue;
      }
      try {
        device_codecs_[std::size_t(id)]->finish(*out[i], e.kind == edge_kind::activation ? &device_mask_of(id) : nullptr);
      } catch (const error& why) {
        if (why.code() == errc::numeric) poison(id, tensor_of(e), *out[i]);
        else explain(e, "to be sent to peer ", p_.peer_of(e.to, micro_batch_), why);
      }
    }
  }
  device_mask& device_mask_of(int e) { return device_masks_[std::size_t(e) * std::size_t(slots_) + std::size_t(slot_)]; }
  const device_mask* device_forward(const edge& e) {
    return e.kind == edge_kind::cotangent && e.forward >= 0 ? &device_mask_of(e.forward) : nullptr;
  }
  void keep_all(int id, const tensor_ref& x) {
    if (prog_.edges[std::size_t(id)].kind != edge_kind::activation) return;
    if (memory_) device_mask_of(id).keep_all(x.dims.rows(), x.dims.last());
    else mask_of(id).keep_all(x.dims.rows(), x.dims.last());
  }

  // Every codec searches what it encodes, so that this also finds what is finite and does not fit the wire.
  void poison(int id, const tensor_ref& x, std::vector<std::byte>& frame) {
    const edge& e = prog_.edges[std::size_t(id)];
    frame.clear();
    keep_all(id, x);
    note(fault_of(e), micro_batch_, e.node, p_.peer_of(e.from, micro_batch_));
  }

  const graph_view& g_;
  const plan& p_;
  const program& prog_;
  device_binding device_;
  u64 seed_;
  parameter_store& store_;
  int stage_;
  int first_group_ = 0;
  int slots_ = 1;
  stage_layout layout_;
  device_memory* memory_ = nullptr;             ///< of a device that has its own
  memory_block arena_;
  std::vector<std::unique_ptr<codec>> codecs_;  ///< by edge
  std::vector<mask> masks_;                     ///< by (activation edge, slot)
  std::vector<std::unique_ptr<device_codec>> device_codecs_;
  std::vector<device_mask> device_masks_;
  std::vector<device_array> inputs_;            ///< by node: the batch on the device
  shared_numbers<double> loss_values_;          ///< by micro-batch
  shared_numbers<u32> found_;                   ///< what is not finite: by micro-batch and node, outputs and cotangents
  shared_numbers<u32> sent_found_;              ///< the same of what is being sent, by edge
  std::vector<std::byte> shown_;
  std::vector<std::vector<int>> fresh_;         ///< by task
  value_observer observer_;
  flags frozen_;
  fault first_fault_;

  const step_data* data_ = nullptr;
  double loss_scale_ = 1;
  bool clear_gradients_ = false;
  std::vector<double> losses_;
  int micro_batch_ = 0, slot_ = 0;
  i64 first_row_ = 0;
  sizes sizes_;
};

}  // namespace fusionllm::inline v0
