// SPDX-License-Identifier: Apache-2.0
// One peer of a run: a state machine that takes messages in, submits tasks to its device, and sends messages out. It
// lives on a reactor and never computes or waits there. A step has five phases:
//   tasks     forward and backward of every micro-batch, in the dispatcher's order (task_frames.hpp)
//   chain     gradients of replicated stages run from replica to replica, each adding its groups (gradient_sums.hpp)
//   totals    primary owners sum their parameters' uses; everyone sends the leader a summary
//   verdict   the leader's answer: loss, norm, scale, or that the step is skipped; primary owners update (step_judge.hpp)
//   weights   copies of parameters arrive from their primary owners (weight_updates.hpp)
// The results are the same bits for every plan: what is summed where, and in which order, follows from the graph.
#pragma once

#include <optional>

#include "device_queue.hpp"
#include "index_check.hpp"
#include "task_frames.hpp"
#include "waiting_text.hpp"
#include "weight_updates.hpp"

namespace fusionllm::inline v0 {

struct engine_options {
  int self = 0;
  u64 seed = 0;
  sizes bounds;                      ///< of one micro-batch
  optimizer_settings optimizer;
  codec_factory make_codec;
  /// Emulation: how long each task of the program and the update take with a full micro-batch; empty: none.
  std::vector<nanoseconds> holds;
  nanoseconds update_hold = 0;
  std::vector<std::string> names;    ///< of peers, for errors; empty: their numbers
  u32 epoch = 0;
  skip_settings skipping;
  loss_history history;              ///< of a run that goes on; only the leader needs it
};

class engine {
 public:
  engine(const graph_view& g, const plan& p, const device_binding& device, engine_options o, reactor& loop,
         device_queue& queue, engine_host& host)
      : options_(std::move(o)),
        loop_(loop),
        queue_(queue),
        host_(host),
        share_(g, p, options_.self, weights_beside(device.real), options_.optimizer, options_.names),
        dispatcher_(share_.prog, share_.p, share_.stage, share_.replica),
        store_(share_.g, share_.p, options_.self, weights_beside(device.real), options_.seed, device.context->memory()),
        compute_(share_.g, share_.p, share_.prog, options_.self, device, options_.bounds, options_.seed, store_, options_.make_codec,
                 dispatcher_.slots()),
        expected_(share_, compute_, options_.bounds, options_.epoch),
        box_(expected_, buffers_),
        out_(options_.self, options_.epoch, buffers_, host_),
        frames_(share_, compute_, options_.bounds, buffers_, box_, out_),
        gradients_(share_, device, store_, compute_, box_, out_),
        updates_(share_, device, options_.optimizer, store_, box_, out_),
        judge_(all_peers(share_.p), share_.g.params.size(), share_.p.micro_batches, options_.optimizer, options_.skipping, options_.history) {
    flags frozen;
    for (const auto& r : share_.rules) frozen.push_back(!r.updates);
    compute_.leave_out(std::move(frozen));
  }
  ~engine() { queue_.drain(); }
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Begins a step, which must be next_step(), unless one is under way. `data` must stay until on_step. Messages that
  /// came early count now. Errors: model, for a batch beyond the bounds, or a token or label that the model has not.
  void start(const step_data& data) {
    check_data(data);
    data_ = &data;
    phase_ = phase::tasks;
    began_ = loop_.now();
    computed_ = 0;
    dispatcher_.begin_step();
    compute_.begin_step(data, loss_scale());
    box_.each([&](const frame_header& h) { note_arrival(h); });
    pump();
  }

  /// Memory for a message that begins to arrive. Errors: protocol, for what this peer cannot expect now; nothing is
  /// allocated then.
  std::span<std::byte> place(const frame_header& h) { return box_.place(h); }
  /// A whole message is in the memory that place() gave, or elsewhere: then it is copied. Errors: protocol.
  void deliver(const frame_header& h, std::span<const std::byte> payload) {
    box_.deliver(h, payload);
    ++progress_;
    if (phase_ == phase::idle || h.step != box_.step()) return;
    note_arrival(h);
    pump();
  }
  /// A message that was placed will not come after all.
  void abandon(std::span<const std::byte> memory) { box_.abandon(memory); }
  void sent(u64 tag) { out_.sent(tag); }

  u64 next_step() const { return box_.step(); }
  /// After loading a checkpoint.
  void set_next_step(u64 step) { box_.set_step(step); }
  /// Of the steps so far, on the leader.
  const loss_history& history() const { return judge_.history(); }
  void set_history(const loss_history& h) { judge_.set_history(h); }
  bool idle() const { return phase_ == phase::idle; }
  parameter_store& parameters() { return store_; }
  stage_compute& compute() { return compute_; }
  const plan& the_plan() const { return share_.p; }
  const std::vector<int>& members() const { return judge_.members(); }
  const std::vector<link_traffic>& traffic() const { return out_.traffic(); }
  bool busy() const { return working_; }

  /// Grows with everything that happens: a wait without progress can be told from a long step.
  u64 progress() const { return progress_; }
  /// Peers that this one is waiting for and what they owe, for errors; empty while it works or is idle.
  std::string waiting_for() const {
    if (working_ || phase_ == phase::idle) return "";
    return what_is_owed() + " in step " + std::to_string(next_step());
  }

 private:
  enum class phase { idle, tasks, chain, totals, verdict, weights, failed };

  static std::vector<int> all_peers(const plan& p) {
    std::vector<int> r;
    for (const auto& replicas : p.peers) r.insert(r.end(), replicas.begin(), replicas.end());
    return r;
  }

  void note_arrival(const frame_header& h) {
    if (h.kind == frame_kind::activation || h.kind == frame_kind::cotangent) dispatcher_.arrived(int(h.edge), int(h.micro_batch));
  }

  // Every loss term counts 1 / (terms of the whole batch), also when this peer sees only some of its micro-batches.
  double loss_scale() const {
    if (!compute_.has_loss()) return 1;
    const graph_view& g = share_.g;
    const node& o = g.nodes[std::size_t(g.loss)];
    const void* targets = o.in[1] >= 0 ? data_->inputs[std::size_t(o.in[1])] : nullptr;
    const u64 n = o.op->counted ? o.op->counted(g.view(g.loss, {data_->rows, data_->time}), targets) : 1;
    return n ? 1.0 / double(n) : 0.0;
  }

  void check_data(const step_data& data) const {
    const i64 most = options_.bounds.batch * share_.p.micro_batches;
    if (data.rows < 0 || data.rows > most || data.time < 1 || data.time > options_.bounds.time)
      fail(errc::model, "a batch of ", data.rows, " rows of ", data.time, ", this peer has memory for at most ", most, " of ",
           options_.bounds.time);
    if (data.step != next_step()) fail(errc::internal, "step ", data.step, " was started, the next one is ", next_step());
    check_indices(share_.g, data.inputs, {data.rows, data.time});
  }

  std::string what_is_owed() const {
    const waiting_text text(share_);
    if (phase_ == phase::tasks) {
      const auto blocked = dispatcher_.blocked_on_edge();
      return blocked ? text.tensor(*blocked) : "";
    }
    if (phase_ == phase::chain) return text.chain();
    if (phase_ == phase::totals) {
      const auto owed = gradients_.missing_total();
      return owed ? text.total(owed) : "";
    }
    if (phase_ == phase::verdict) return share_.leads() ? text.summaries(judge_) : text.verdict();
    const int parameter = updates_.missing();
    return parameter >= 0 ? text.values(parameter) : "";
  }

  // --- the state machine
  void pump() {
    while (!working_) {
      const phase before = phase_;
      switch (phase_) {
        case phase::tasks: pump_tasks(); break;
        case phase::chain: pump_chain(); break;
        case phase::totals: pump_totals(); break;
        case phase::verdict: pump_verdict(); break;
        case phase::weights: pump_weights(); break;
        case phase::idle:
        case phase::failed: return;
      }
      if (phase_ == before) return;
    }
  }

  template <class Work, class Then>
  void submit(Work work, nanoseconds modelled, Then then) {
    working_ = true;
    queue_.submit(std::move(work), modelled, [this, then](const completion& c) {
      working_ = false;
      ++progress_;
      computed_ += c.measured;
      if (c.failure) return fail_with(c.failure);
      try {
        then();
        pump();
      } catch (...) {
        fail_with(std::current_exception());
      }
    });
  }
  void fail_with(const std::exception_ptr& e) {
    phase_ = phase::failed;
    try {
      std::rethrow_exception(e);
    } catch (const error& x) {
      host_.on_failure(x);
    } catch (const std::exception& x) {
      host_.on_failure(error(errc::internal, x.what()));
    }
  }

  void pump_tasks() {
    const auto next = dispatcher_.next();
    if (!next) {
      if (dispatcher_.done()) phase_ = phase::chain;
      return;
    }
    running_ = *next;
    frames_.begin(running_);
    const auto& mine = dispatcher_.micro_batches();
    position_ = int(std::lower_bound(mine.begin(), mine.end(), running_.micro_batch) - mine.begin());
    nanoseconds hold = options_.holds.empty() ? 0 : options_.holds[std::size_t(running_.task)];
    hold = hold / options_.bounds.batch * compute_.sizes_of(running_.micro_batch).batch;
    submit([this] { compute_.run(running_, position_, frames_.in(), frames_.out()); }, hold, [this] {
      frames_.end(running_);
      dispatcher_.finished(running_);
    });
  }

  void pump_chain() {
    if (!gradients_.chain_is_here()) return;
    gradients_.prepare_chain();
    submit([this] { gradients_.add_groups(); }, 0, [this] {
      gradients_.send_chain();
      phase_ = phase::totals;
    });
  }

  void pump_totals() {
    if (gradients_.missing_total()) return;
    gradients_.prepare_totals();
    submit([this] { sum_up(); }, 0, [this] {
      phase_ = phase::verdict;
      if (share_.leads()) judge_.summary_of(share_.self) = summary_;
      else
        out_.send_encoded(out_.header(summary_kind, next_step(), share_.leader), summary_,
                          step_summary::bytes(summary_.squares.size() + summary_.losses.size()) + fault::bytes);
    });
  }
  void sum_up() {
    compute_.collect();
    gradients_.add_uses(summary_.squares);
    summary_.first = compute_.first_fault();
    summary_.losses.clear();
    if (compute_.has_loss())
      for (int m : dispatcher_.micro_batches()) summary_.losses.push_back({u32(m), compute_.losses()[std::size_t(m)]});
  }

  void pump_verdict() {
    if (share_.leads()) {
      if (!judge()) return;
    } else {
      const auto* m = box_.find(verdict_kind, 0, 0);
      if (!m) return;
      verdict_.decode(box_.bytes_of(*m));
      box_.drop(*m);
    }
    submit([this] { if (!verdict_.skipped) updates_.update(next_step(), verdict_.gradient_scale, data_->rows); }, options_.update_hold, [this] {
      gradients_.drop_totals();
      if (!verdict_.skipped) updates_.send_values();
      phase_ = phase::weights;
    });
  }
  /// As the leader; false while summaries are missing.
  bool judge() {
    while (const auto* m = box_.find_if([](const frame_header& h) { return h.kind == summary_kind; })) {
      judge_.summary_of(int(m->header.source)).decode(box_.bytes_of(*m));
      box_.drop(*m);
    }
    if (!judge_.complete()) return false;
    verdict_ = judge_.judge();
    for (int to : members())
      if (to != share_.self) out_.send_encoded(out_.header(verdict_kind, next_step(), to), verdict_, step_verdict::skipped_bytes);
    return true;
  }

  void pump_weights() {
    if (verdict_.skipped || !updates_.has_copies()) return finish_step();
    if (updates_.missing() >= 0) return;
    updates_.prepare_copies();
    submit([this] { updates_.copy(); }, 0, [this] {
      updates_.drop_copies();
      finish_step();
    });
  }

  void finish_step() {
    step_report r;
    r.step = next_step();
    r.verdict = verdict_;
    r.learning_rate = learning_rate_at(options_.optimizer, r.step);
    r.elapsed = loop_.now() - began_;
    r.computed = computed_;
    box_.end_step();
    phase_ = phase::idle;
    host_.on_step(r);
  }

  engine_options options_;
  reactor& loop_;
  device_queue& queue_;
  engine_host& host_;
  const peer_share share_;
  dispatcher dispatcher_;
  parameter_store store_;
  stage_compute compute_;
  expected_messages expected_;
  buffer_pool buffers_;
  message_box box_;
  outgoing_messages out_;
  task_frames frames_;
  gradient_sums gradients_;
  weight_updates updates_;
  step_judge judge_;

  const step_data* data_ = nullptr;
  u64 progress_ = 0;
  phase phase_ = phase::idle;
  bool working_ = false;
  nanoseconds began_ = 0, computed_ = 0;
  task_ref running_;
  int position_ = 0;
  step_summary summary_;
  step_verdict verdict_;
};

}  // namespace fusionllm::inline v0
