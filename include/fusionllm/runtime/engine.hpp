// SPDX-License-Identifier: Apache-2.0
// One peer of a run: a state machine that takes messages in, submits tasks to its device, and sends messages out. It
// lives on a reactor and never computes or waits there. A step has five phases:
//   tasks     forward and backward of every micro-batch, in the dispatcher's order
//   chain     gradients of replicated stages run from replica to replica, each adding its groups in order
//   totals    primary owners sum their parameters' uses; everyone sends the leader a summary
//   verdict   the leader's answer: loss, norm, scale, or that the step is skipped; primary owners update
//   weights   copies of parameters arrive from their primary owners
// The results are the same bits for every plan: what is summed where, and in which order, follows from the graph.
#pragma once

#include <optional>

#include "../transport/frame.hpp"
#include "buffer_pool.hpp"
#include "device_queue.hpp"
#include "expected_messages.hpp"
#include "index_check.hpp"
#include "step_judge.hpp"

namespace fusionllm::inline v0 {

struct step_report {
  u64 step = 0;
  step_verdict verdict;
  double learning_rate = 0;
  nanoseconds elapsed = 0;    ///< on the reactor's clock
  nanoseconds computed = 0;   ///< in tasks, as measured on this machine
};

/// Bytes sent to one peer since the run began.
struct link_traffic {
  int to = -1;
  u64 messages = 0;
  u64 raw = 0;
  u64 encoded = 0;
};

/// What an engine needs of the world.
class engine_host {
 public:
  virtual ~engine_host() = default;
  /// Sends a message; `payload` stays until sent(tag) is called on the engine.
  virtual void send(int to, const frame_header& h, std::span<const std::byte> payload, u64 tag) = 0;
  virtual void on_step(const step_report& r) = 0;
  virtual void on_failure(const error& e) = 0;
};

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
      : g_(g),
        plan_(p),
        options_(std::move(o)),
        device_(device),
        loop_(loop),
        queue_(queue),
        host_(host),
        program_(compile(g, plan_)),
        seat_(plan_, options_.self),
        owners_(owners_of(g, plan_)),
        leader_(leader_of(g, plan_)),
        rules_(parameter_rules(g, options_.optimizer.no_decay, options_.optimizer.freeze)),
        dispatcher_(program_, plan_, seat_.stage, seat_.replica),
        store_(g, plan_, options_.self, device.real, options_.seed),
        compute_(g_, plan_, program_, options_.self, device, options_.bounds, options_.seed, store_, options_.make_codec,
                 dispatcher_.slots()),
        expected_(g_, plan_, program_, seat_, owners_, compute_, options_.bounds, options_.epoch, size_of(device.real), options_.names),
        judge_(all_peers(plan_), g.params.size(), plan_.micro_batches, options_.optimizer, options_.skipping, options_.history) {
    flags frozen;
    for (const auto& r : rules_) frozen.push_back(!r.updates);
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
    for (const auto& s : stored_)
      if (s.whole && s.header.step == step_ && is_tensor(s.header.kind)) dispatcher_.arrived(int(s.header.edge), int(s.header.micro_batch));
    pump();
  }

  /// Memory for a message that begins to arrive. Errors: protocol, for what this peer cannot expect now; nothing is
  /// allocated then.
  std::span<std::byte> place(const frame_header& h) {
    expected_.check(h, step_);
    if (find_same(h)) expected_.came_twice(h);
    if (h.total_length == 0) return {};
    const int b = buffers_.take(h.total_length);
    buffers_[b].resize(h.total_length);
    stored_.push_back({h, b, false});
    return buffers_[b];
  }
  /// A whole message is in the memory that place() gave, or elsewhere: then it is copied. Errors: protocol.
  void deliver(const frame_header& h, std::span<const std::byte> payload) {
    expected_.check(h, step_);
    if (payload.size() != h.total_length)
      fail(errc::protocol, expected_.title(h.source), " announced ", h.total_length, " bytes and sent ", payload.size());
    if (h.kind == summary_kind) step_summary::check(payload);
    if (stored_message* s = find_same(h)) {
      if (s->whole || payload.data() != buffers_[s->buffer].data()) expected_.came_twice(h);
      s->whole = true;
    } else {
      const int b = payload.empty() ? -1 : buffers_.take(payload.size());
      if (b >= 0) buffers_[b].assign(payload.begin(), payload.end());
      stored_.push_back({h, b, true});
    }
    ++progress_;
    if (phase_ == phase::idle || h.step != step_) return;
    if (is_tensor(h.kind)) dispatcher_.arrived(int(h.edge), int(h.micro_batch));
    pump();
  }
  /// A message that was placed will not come after all.
  void abandon(std::span<const std::byte> memory) {
    for (auto& s : stored_)
      if (!s.whole && buffers_[s.buffer].data() == memory.data()) return drop(&s);
  }
  void sent(u64 tag) { buffers_.give_back(int(tag)); }

  u64 next_step() const { return step_; }
  /// After loading a checkpoint.
  void set_next_step(u64 step) { step_ = step; }
  /// Of the steps so far, on the leader.
  const loss_history& history() const { return judge_.history(); }
  void set_history(const loss_history& h) { judge_.set_history(h); }
  bool idle() const { return phase_ == phase::idle; }
  parameter_store& parameters() { return store_; }
  stage_compute& compute() { return compute_; }
  const plan& the_plan() const { return plan_; }
  const std::vector<int>& members() const { return judge_.members(); }
  const std::vector<link_traffic>& traffic() const { return traffic_; }
  bool busy() const { return working_; }

  /// Grows with everything that happens: a wait without progress can be told from a long step.
  u64 progress() const { return progress_; }
  /// Peers that this one is waiting for and what they owe, for errors; empty while it works or is idle.
  std::string waiting_for() const {
    if (working_ || phase_ == phase::idle) return "";
    std::ostringstream s;
    if (phase_ == phase::tasks) {
      if (const auto b = dispatcher_.blocked_on_edge()) {
        const edge& e = program_.edges[std::size_t(b->task)];
        s << expected_.title(u64(plan_.peer_of(e.from, b->micro_batch))) << " for the "
          << (e.kind == edge_kind::activation ? "activation" : "cotangent") << " of node " << e.node << " ("
          << g_.nodes[std::size_t(e.node)].scope.view() << ' ' << g_.nodes[std::size_t(e.node)].op->name
          << "), micro-batch " << b->micro_batch;
      }
    } else if (phase_ == phase::chain) {
      s << expected_.title(u64(seat_.previous_replica())) << " for gradients of its replica";
    } else if (phase_ == phase::totals) {
      for (const auto& x : store_.parameters())
        if (const int from = missing_total(x); from >= 0) {
          s << expected_.title(u64(from)) << " for the gradient of " << g_.params[std::size_t(x.parameter)].path.view();
          break;
        }
    } else if (phase_ == phase::verdict) {
      if (options_.self != leader_) s << expected_.title(u64(leader_)) << ", the leader, for its verdict";
      else
        for (std::size_t i = 0; i < members().size(); ++i)
          if (!judge_.has_summary(i)) s << (s.tellp() > 0 ? ", " : "") << expected_.title(u64(members()[i])) << " for its summary";
    } else {
      for (const auto& x : store_.parameters())
        if (!x.primary && updates(x.parameter) && !find(frame_kind::parameter, u32(x.parameter), 0)) {
          s << expected_.title(u64(owners_[std::size_t(x.parameter)].primary)) << " for new values of "
            << g_.params[std::size_t(x.parameter)].path.view();
          break;
        }
    }
    s << " in step " << step_;
    return std::move(s).str();
  }

 private:
  enum class phase { idle, tasks, chain, totals, verdict, weights, failed };
  struct stored_message {
    frame_header header;
    int buffer;  ///< -1: an empty payload
    bool whole;  ///< else it is still arriving
  };

  static bool is_tensor(frame_kind k) { return k == frame_kind::activation || k == frame_kind::cotangent; }

  static std::vector<int> all_peers(const plan& p) {
    std::vector<int> r;
    for (const auto& replicas : p.peers) r.insert(r.end(), replicas.begin(), replicas.end());
    return r;
  }
  u64 parameter_bytes(int i) const { return g_.params[std::size_t(i)].count() * size_of(device_.real); }

  // Every loss term counts 1 / (terms of the whole batch), also when this peer sees only some of its micro-batches.
  double loss_scale() const {
    if (!compute_.has_loss()) return 1;
    const node& o = g_.nodes[std::size_t(g_.loss)];
    const void* targets = o.in[1] >= 0 ? data_->inputs[std::size_t(o.in[1])] : nullptr;
    const u64 n = o.op->counted ? o.op->counted(g_.view(g_.loss, {data_->rows, data_->time}), targets) : 1;
    return n ? 1.0 / double(n) : 0.0;
  }

  void check_data(const step_data& data) const {
    const i64 most = options_.bounds.batch * plan_.micro_batches;
    if (data.rows < 0 || data.rows > most || data.time < 1 || data.time > options_.bounds.time)
      fail(errc::model, "a batch of ", data.rows, " rows of ", data.time, ", this peer has memory for at most ", most, " of ",
           options_.bounds.time);
    if (data.step != step_) fail(errc::internal, "step ", data.step, " was started, the next one is ", step_);
    check_indices(g_, data.inputs, {data.rows, data.time});
  }

  // --- messages at hand
  stored_message* find(frame_kind kind, u32 edge, u32 micro_batch) {
    for (auto& s : stored_)
      if (s.whole && s.header.kind == kind && s.header.step == step_ && s.header.edge == edge && s.header.micro_batch == micro_batch)
        return &s;
    return nullptr;
  }
  /// What has the place of `h`, whole or not.
  stored_message* find_same(const frame_header& h) {
    for (auto& s : stored_)
      if (s.header.kind == h.kind && s.header.step == h.step && s.header.edge == h.edge &&
          s.header.micro_batch == h.micro_batch && s.header.source == h.source)
        return &s;
    return nullptr;
  }
  const stored_message* find(frame_kind kind, u32 edge, u32 micro_batch) const {
    return const_cast<engine*>(this)->find(kind, edge, micro_batch);
  }
  const_byte_span bytes_of(const stored_message& s) { return s.buffer < 0 ? const_byte_span{} : const_byte_span(buffers_[s.buffer]); }
  void release(int buffer) {
    if (buffer >= 0) buffers_.give_back(buffer);
  }
  void drop(stored_message* s) {
    release(s->buffer);
    forget(s);
  }
  /// The buffer stays taken.
  void forget(stored_message* s) {
    *s = stored_.back();
    stored_.pop_back();
  }

  frame_header header(frame_kind kind, int to, u32 edge, u32 micro_batch) const {
    frame_header h;
    h.kind = kind;
    h.step = step_;
    h.edge = edge;
    h.micro_batch = micro_batch;
    h.source = u32(options_.self);
    h.destination = u32(to);
    h.epoch = options_.epoch;
    return h;
  }
  void send_buffer(int to, frame_header h, int buffer, u64 raw) {
    const auto& bytes = buffers_[buffer];
    h.raw_length = raw;
    note_traffic(to, raw, bytes.size());
    host_.send(to, h, bytes, u64(buffer));
  }
  void note_traffic(int to, u64 raw, u64 encoded) {
    for (auto& t : traffic_)
      if (t.to == to) {
        ++t.messages;
        t.raw += raw;
        t.encoded += encoded;
        return;
      }
    traffic_.push_back({to, 1, raw, encoded});
  }
  void send_copy(int to, const frame_header& h, const std::byte* from, u64 bytes) {
    const int b = buffers_.take(bytes);
    buffers_[b].assign(from, from + bytes);
    send_buffer(to, h, b, bytes);
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
    const task& t = program_.tasks[std::size_t(running_.task)];
    in_.clear();
    in_buffers_.clear();
    for (int e : compute_.fresh_receives(running_.task)) {
      stored_message* s = find(program_.edges[std::size_t(e)].kind == edge_kind::activation ? frame_kind::activation
                                                                                           : frame_kind::cotangent,
                               u32(e), u32(running_.micro_batch));
      in_.push_back(bytes_of(*s));
      in_buffers_.push_back(s->buffer);
      forget(s);
    }
    out_.clear();
    out_buffers_.clear();
    for (int e : t.sends) {
      out_buffers_.push_back(buffers_.take(std::size_t(compute_.max_frame_bytes(e, options_.bounds))));
      out_.push_back(&buffers_[out_buffers_.back()]);
    }
    const auto& mine = dispatcher_.micro_batches();
    position_ = int(std::lower_bound(mine.begin(), mine.end(), running_.micro_batch) - mine.begin());
    nanoseconds hold = options_.holds.empty() ? 0 : options_.holds[std::size_t(running_.task)];
    hold = hold / options_.bounds.batch * compute_.sizes_of(running_.micro_batch).batch;
    submit([this] { compute_.run(running_, position_, in_, out_); }, hold, [this] { finish_task(); });
  }

  void finish_task() {
    const task& t = program_.tasks[std::size_t(running_.task)];
    for (int b : in_buffers_) release(b);
    for (std::size_t i = 0; i < t.sends.size(); ++i) {
      const edge& e = program_.edges[std::size_t(t.sends[i])];
      const int to = plan_.peer_of(e.to, running_.micro_batch);
      frame_header h = header(e.kind == edge_kind::activation ? frame_kind::activation : frame_kind::cotangent, to,
                              u32(t.sends[i]), u32(running_.micro_batch));
      h.codec = compute_.codec_of_edge(t.sends[i])->wire_id();
      send_buffer(to, h, out_buffers_[i], compute_.raw_bytes(t.sends[i], compute_.sizes_of(running_.micro_batch)));
    }
    dispatcher_.finished(running_);
  }

  // Sums this replica's groups onto what the replica before it sends, use by use.
  void pump_chain() {
    if (seat_.replica > 0)
      for (const auto& u : store_.uses())
        if (updates(u.parameter) && !find(frame_kind::gradient, u32(u.parameter), gradient_slot(u.index, false))) return;
    additions_.clear();
    for (auto& u : store_.uses()) {
      if (!updates(u.parameter)) continue;
      const i64 n = i64(g_.params[std::size_t(u.parameter)].count());
      if (seat_.replica > 0) {
        const stored_message* s = find(frame_kind::gradient, u32(u.parameter), gradient_slot(u.index, false));
        if (s->buffer >= 0) additions_.push_back({u.groups[0], buffers_[s->buffer].data(), u.groups[0], n});
        else note_gradient(u.parameter, int(s->header.source));
      }
      for (std::size_t i = 1; i < u.groups.size(); ++i) additions_.push_back({u.groups[0], u.groups[0], u.groups[i], n});
    }
    submit([this] { add_groups(); }, 0, [this] { finish_chain(); });
  }
  bool updates(int parameter) const { return rules_[std::size_t(parameter)].updates; }
  void note_gradient(int parameter, int peer) {
    compute_.note({fault_kind::gradient, fault::no, u32(owners_[std::size_t(parameter)].uses.front().node), u32(parameter), u32(peer)});
  }
  bool finite(const std::byte* x, int parameter) {
    return device_.vectors->finite(*device_.context, x, i64(g_.params[std::size_t(parameter)].count()));
  }
  /// Where the sum of a use goes.
  int destination_of(const local_use& u) const {
    return seat_.last_replica() ? owners_[std::size_t(u.parameter)].primary : seat_.replicas[std::size_t(seat_.replica) + 1];
  }
  // What is to be sent is searched first.
  void add_groups() {
    add_up();
    poisoned_.clear();
    for (const auto& u : store_.uses()) {
      const bool bad = updates(u.parameter) && destination_of(u) != options_.self && !finite(u.groups[0], u.parameter);
      if (bad) note_gradient(u.parameter, options_.self);
      poisoned_.push_back(bad);
    }
  }
  // On the device's thread: messages at hand are not looked at here, they may change.
  void add_up() {
    for (const addition& x : additions_) device_.vectors->add(*device_.context, x.out, x.a, x.b, x.n);
  }
  void finish_chain() {
    for (std::size_t i = 0; i < store_.uses().size(); ++i) {
      const local_use& u = store_.uses()[i];
      if (!updates(u.parameter)) continue;
      if (seat_.replica > 0) drop(find(frame_kind::gradient, u32(u.parameter), gradient_slot(u.index, false)));
      const int to = destination_of(u);
      if (to == options_.self) continue;
      const frame_header h = header(frame_kind::gradient, to, u32(u.parameter), gradient_slot(u.index, seat_.last_replica()));
      send_copy(to, h, u.groups[0], poisoned_[i] ? 0 : parameter_bytes(u.parameter));
    }
    phase_ = phase::totals;
  }

  /// A peer whose total of some use has not come yet, -1 if all have.
  int missing_total(const local_parameter& x) const {
    if (!x.primary || !updates(x.parameter)) return -1;
    const parameter_owners& o = owners_[std::size_t(x.parameter)];
    for (std::size_t u = 0; u < o.uses.size(); ++u)
      if (!seat_.forms_total(o, int(u)) && !find(frame_kind::gradient, u32(x.parameter), gradient_slot(int(u), true)))
        return plan_.peers[std::size_t(o.stages[u])].back();
    return -1;
  }
  void pump_totals() {
    for (const auto& x : store_.parameters())
      if (missing_total(x) >= 0) return;
    additions_.clear();
    for (auto& x : store_.parameters()) {
      if (!x.primary || !updates(x.parameter)) continue;
      x.gradient = nullptr;
      for (std::size_t u = 0; u < owners_[std::size_t(x.parameter)].uses.size(); ++u) {
        std::byte* const total = total_of(x, int(u));
        if (!total) continue;
        if (x.gradient) additions_.push_back({x.gradient, x.gradient, total, i64(g_.params[std::size_t(x.parameter)].count())});
        else x.gradient = total;
      }
    }
    submit([this] { add_uses(); }, 0, [this] { finish_totals(); });
  }
  /// Null for one that was not finite.
  std::byte* total_of(const local_parameter& x, int use) {
    const parameter_owners& o = owners_[std::size_t(x.parameter)];
    if (seat_.forms_total(o, use)) return store_.find_use(o.uses[std::size_t(use)])->groups[0];
    const stored_message* s = find(frame_kind::gradient, u32(x.parameter), gradient_slot(use, true));
    if (s->buffer >= 0) return buffers_[s->buffer].data();
    note_gradient(x.parameter, int(s->header.source));
    return nullptr;
  }
  void add_uses() {
    add_up();
    summary_.squares.clear();
    summary_.losses.clear();
    for (const auto& x : store_.parameters()) {
      if (!x.primary || !updates(x.parameter) || !x.gradient) continue;
      const i64 n = i64(g_.params[std::size_t(x.parameter)].count());
      if (!g_.params[std::size_t(x.parameter)].trained()) {
        if (!finite(x.gradient, x.parameter)) note_gradient(x.parameter, options_.self);
        continue;
      }
      const double squares = device_.vectors->sum_of_squares(*device_.context, x.gradient, n);
      if (!std::isfinite(squares)) note_gradient(x.parameter, options_.self);
      summary_.squares.push_back({u32(x.parameter), squares});
    }
    summary_.first = compute_.first_fault();
    if (compute_.has_loss())
      for (int m : dispatcher_.micro_batches()) summary_.losses.push_back({u32(m), compute_.losses()[std::size_t(m)]});
  }
  void finish_totals() {
    phase_ = phase::verdict;
    if (options_.self == leader_) {
      judge_.summary_of(leader_) = summary_;
      return;
    }
    const int b = buffers_.take(step_summary::bytes(summary_.squares.size() + summary_.losses.size()) + fault::bytes);
    summary_.encode(buffers_[b]);
    send_buffer(leader_, header(summary_kind, leader_, 0, 0), b, buffers_[b].size());
  }

  // --- the leader
  /// False while summaries are missing.
  bool judge() {
    for (std::size_t i = stored_.size(); i-- > 0;) {
      stored_message& s = stored_[i];
      if (!s.whole || s.header.kind != summary_kind || s.header.step != step_) continue;
      judge_.summary_of(int(s.header.source)).decode(bytes_of(s));
      drop(&s);
    }
    if (!judge_.complete()) return false;
    verdict_ = judge_.judge();
    for (int to : members()) {
      if (to == options_.self) continue;
      const int b = buffers_.take(step_verdict::skipped_bytes);
      verdict_.encode(buffers_[b]);
      send_buffer(to, header(verdict_kind, to, 0, 0), b, buffers_[b].size());
    }
    return true;
  }

  void pump_verdict() {
    if (options_.self == leader_) {
      if (!judge()) return;
    } else {
      stored_message* s = find(verdict_kind, 0, 0);
      if (!s) return;
      verdict_.decode(bytes_of(*s));
      drop(s);
    }
    submit([this] { update(); }, options_.update_hold, [this] { finish_update(); });
  }
  void update() {
    if (verdict_.skipped) return;
    const update_scalars s = scalars_at(options_.optimizer, step_, verdict_.gradient_scale);
    for (auto& x : store_.parameters()) {
      if (!x.primary || !updates(x.parameter)) continue;
      const parameter_info& info = g_.params[std::size_t(x.parameter)];
      const bool decays = rules_[std::size_t(x.parameter)].decays;
      const i64 n = i64(info.count());
      if (!info.trained())
        device_.vectors->decay(*device_.context, x.weight, x.gradient, n,
                               kept(info.momentum, filled(data_->rows, plan_.micro_batches)));
      else if (options_.optimizer.kind == optimizer_kind::adamw)
        device_.vectors->adamw(*device_.context, x.weight, x.gradient, x.m, x.v, n, decays, s);
      else device_.vectors->sgd(*device_.context, x.weight, x.gradient, x.m, n, decays, s);
      if (!finite(x.weight, x.parameter))
        fail(errc::numeric, "the update of step ", step_, " leaves an infinity or NaN in ", info.path.view(),
             ": lower learning_rate and go on from the last checkpoint");
    }
  }
  void finish_update() {
    for (auto& x : store_.parameters()) {
      if (!x.primary || !updates(x.parameter)) continue;
      const parameter_owners& o = owners_[std::size_t(x.parameter)];
      for (std::size_t u = 0; u < o.uses.size(); ++u)
        if (!seat_.forms_total(o, int(u))) drop(find(frame_kind::gradient, u32(x.parameter), gradient_slot(int(u), true)));
      if (verdict_.skipped) continue;
      for (int to : o.holders)
        if (to != options_.self)
          send_copy(to, header(frame_kind::parameter, to, u32(x.parameter), 0), x.weight, parameter_bytes(x.parameter));
    }
    phase_ = phase::weights;
  }

  void pump_weights() {
    bool any = false;
    if (!verdict_.skipped)
      for (const auto& x : store_.parameters()) {
        if (x.primary || !updates(x.parameter)) continue;
        any = true;
        if (!find(frame_kind::parameter, u32(x.parameter), 0)) return;
      }
    if (!any) return finish_step();
    copies_.clear();
    for (auto& x : store_.parameters())
      if (!x.primary && updates(x.parameter))
        copies_.push_back({x.weight, bytes_of(*find(frame_kind::parameter, u32(x.parameter), 0))});
    submit([this] { for (const auto& [to, from] : copies_) std::memcpy(to, from.data(), from.size()); }, 0, [this] {
      for (const auto& x : store_.parameters())
        if (!x.primary && updates(x.parameter)) drop(find(frame_kind::parameter, u32(x.parameter), 0));
      finish_step();
    });
  }

  void finish_step() {
    for (const auto& s : stored_)
      if (s.header.step == step_) expected_.came_twice(s.header);  // everything that this step has a use for is gone
    step_report r;
    r.step = step_;
    r.verdict = verdict_;
    r.learning_rate = learning_rate_at(options_.optimizer, step_);
    r.elapsed = loop_.now() - began_;
    r.computed = computed_;
    phase_ = phase::idle;
    ++step_;
    host_.on_step(r);
  }

  graph_view g_;
  plan plan_;
  engine_options options_;
  device_binding device_;
  reactor& loop_;
  device_queue& queue_;
  engine_host& host_;
  program program_;
  plan_seat seat_;
  std::vector<parameter_owners> owners_;
  int leader_;
  std::vector<parameter_rule> rules_;
  dispatcher dispatcher_;
  parameter_store store_;
  stage_compute compute_;
  expected_messages expected_;
  step_judge judge_;
  buffer_pool buffers_;
  std::vector<stored_message> stored_;
  std::vector<link_traffic> traffic_;

  const step_data* data_ = nullptr;
  u64 step_ = 0;
  u64 progress_ = 0;
  phase phase_ = phase::idle;
  bool working_ = false;
  nanoseconds began_ = 0, computed_ = 0;
  task_ref running_;
  int position_ = 0;
  std::vector<const_byte_span> in_;
  std::vector<int> in_buffers_;
  std::vector<std::vector<std::byte>*> out_;
  std::vector<int> out_buffers_;
  struct addition {
    std::byte* out;
    const std::byte *a, *b;
    i64 n;
  };
  std::vector<addition> additions_;
  flags poisoned_;  ///< by use of a parameter: its gradient is not finite, and is not sent
  std::vector<std::pair<std::byte*, const_byte_span>> copies_;
  step_summary summary_;
  step_verdict verdict_;
};

}  // namespace fusionllm::inline v0
