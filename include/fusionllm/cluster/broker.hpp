// SPDX-License-Identifier: Apache-2.0
// The broker of a run, as a state machine on a reactor: it gathers the peers, has them measured, plans, and grants steps
// a few ahead of the slowest report, never past a step at which state is to be collected. It carries no tensors of a
// step: peers send those to each other. Where the settings name outputs it asks about these instead, and there are no steps.
//
// How long it waits: gather_timeout for each of joining, connecting, one peer's measuring and preparing; after that
// silence_timeout for a word from any one peer, and step_timeout + silence_timeout for anything to happen at all. Then the
// run ends for every peer, with an error that names whom it waited for.
#pragma once

#include "../runtime/messages.hpp"
#include "broker_host.hpp"
#include "broker_questions.hpp"
#include "collected_state.hpp"
#include "measurements.hpp"
#include "planning.hpp"
#include "step_grants.hpp"
#include "step_reports.hpp"

namespace fusionllm::inline v0 {

class broker_node : private connection_handler {
 public:
  /// `first_step` > 0 resumes from the host's saved state, and so does `resumes` at step 0. Errors: config.
  broker_node(const model_binding& model, const cluster_settings& s, transport& net, broker_host& host, u64 first_step = 0,
              bool resumes = false)
      : model_(model),
        settings_(s),
        net_(net),
        loop_(net.loop()),
        host_(host),
        links_(loop_, s.heartbeat, s.silence_timeout, [this](const error& e) { break_off(e); }),
        members_(s.peers),
        grants_(s.steps, s.checkpoint_interval),
        resumes_(resumes || first_step > 0),
        first_step_(first_step) {
    if (s.peers < 1 || first_step > s.steps)
      fail(errc::config, "peers is ", s.peers, " and steps ", s.steps, ", expected at least 1 peer and the ", first_step, " steps that are done");
    if (s.machines && s.machines->size() < s.peers)
      fail(errc::config, "the topology has ", s.machines->size(), " devices, peers is ", s.peers, ": expected at most that many");
  }
  ~broker_node() override {
    for (timer_id t : {deadline_, collecting_}) loop_.cancel(t);
  }
  broker_node(const broker_node&) = delete;
  broker_node& operator=(const broker_node&) = delete;

  /// Listens; peers may join. Gives the real address. Errors: network.
  address start(const address& bind) {
    const address a = net_.listen(bind, *this);
    expect_within(settings_.gather_timeout);
    return a;
  }
  /// Lets the steps that were granted end, collects the state and finishes.
  void request_stop() {
    if (ended_) return;
    grants_.stop();
    if (phase_ == phase::answering) break_off(error(errc::interrupted, "stopped by a user"));
    else if (phase_ == phase::running) advance();
    else if (phase_ != phase::collecting) break_off(error(errc::interrupted, "stopped before the first step"));
  }
  bool ended() const { return ended_; }
  const plan& the_plan() const { return plan_; }

  // --- questions, for a broker whose settings have outputs; these are numbered as there
  bool answering() const { return phase_ == phase::answering && !ended_; }
  /// How many questions about an output may be under way.
  int window(int output) const { return asks_->asker().window(output); }
  /// Asks; `inputs` by node are copied. Errors: peer_lost, internal (more than the window), resource.
  void ask(int output, const question& q, std::span<const void* const> inputs) {
    if (!answering()) fail(errc::internal, "a question to peers that are not there for it");
    asks_->asker().ask(output, q, inputs, [&](int to, const frame_header& h, std::vector<std::byte> payload) {
      outgoing m;
      m.header = h;
      m.owned = std::move(payload);
      m.level = priority::tensor;
      m.deadline = i64(h.step);
      members_[u64(to)].c->send(std::move(m));
    });
    progressed_ = loop_.now();
  }
  /// Whether the oldest question about an output has its answer, and that answer, in `memory`.
  bool answered(int output) const { return asks_->asker().answered(output); }
  tensor_ref take(int output, std::vector<std::byte>& memory) { return asks_->asker().take(output, memory); }
  /// No more questions: the peers end.
  void finish() {
    if (ended_) return;
    tell_all(control_kind::finish, nothing{});
    end(error(errc::ok, "there are no more questions"));
  }

  void break_off(const error& why) {
    if (ended_) return;
    for (const member& m : members_)
      if (m.c) send_failure(*m.c, why);
    end(why);
  }

 private:
  enum class phase { gathering, connecting, measuring, preparing, running, collecting, answering };

  // Who cannot be told something ends the run, and not who happened to speak last, nor the reactor that called.
  template <class T>
  void tell(const member& m, control_kind kind, const T& x) {
    if (ended_ || !m.c) return;
    try {
      send_control(*m.c, kind, x);
    } catch (const error& e) {
      break_off(e);
    }
  }
  template <class T>
  void tell_all(control_kind kind, const T& x) {
    for (const member& m : members_) tell(m, kind, x);
  }

  // --- connections
  std::string refusal(const hello& remote) override { return members_.refusal(remote, phase_ == phase::gathering); }
  void on_open(connection& c) override {
    const std::string why = ended_ ? "the run has ended" : refusal(c.remote());
    if (!why.empty()) return c.close(errc::handshake, why);  // of two that came at the same time both were let in
    members_.admit(c);
    links_.add(c);
  }
  void on_closed(connection& c, const error& why) override {
    links_.remove(c);
    if (!members_.leaves(c) || ended_) return;
    if (phase_ == phase::gathering) {
      members_[c.user] = {};
      return host_.on_text(std::string("a peer left before the run began: ") + why.what());
    }
    break_off(error(why.code() == errc::ok ? errc::peer_lost : why.code(), why.what()));
  }
  void on_rejected(const error& why) override { host_.on_text(std::string("turned away: ") + why.what()); }

  byte_span place(connection& c, const frame_header& h) override {
    if (h.kind == answer_kind) return expect_asked(c).place(int(c.user), h);
    if (h.kind != frame_kind::bulk) return {};
    if (phase_ != phase::collecting) collected_state::not_asked(c, h);
    state_.expect(c, h);
    return host_.state_memory(int(h.edge), int(h.micro_batch), std::size_t(h.total_length));
  }
  void on_message(connection& c, const frame_header& h, const_byte_span payload) override {
    links_.heard(c);
    if (ended_) return;
    member& m = members_[c.user];
    if (h.kind == frame_kind::heartbeat) {
      if (std::exchange(m.progress, h.step) != h.step) progressed_ = loop_.now();
      return;
    }
    progressed_ = loop_.now();
    if (h.kind == frame_kind::bulk) {
      state_.came(c.user);
      return if_collected();
    }
    if (h.kind == answer_kind) return expect_asked(c).deliver(int(c.user), h, payload);
    if (h.kind != frame_kind::control) fail(errc::protocol, c.label(), " sends the broker a message of kind ", int(h.kind));
    from_peer(c, m, h, payload);
  }
  forward_asker& expect_asked(const connection& c) {
    if (phase_ != phase::answering) fail(errc::protocol, c.label(), " sends an answer, and was not asked");
    return asks_->asker();
  }
  void on_sent(connection& c, u64 tag) override {
    if (ended_ || tag != part_tag || phase_ != phase::preparing) return;
    expect_ready();
    send_next_part(int(c.user));
  }
  void from_peer(connection& c, member& m, const frame_header& h, const_byte_span payload) {
    const auto in_turn = [&](bool yes) {
      if (!yes) fail(errc::protocol, c.label(), " sends a control message of kind ", h.edge, " out of turn");
    };
    switch (control_kind(h.edge)) {
      case control_kind::joining: return in_turn(phase_ == phase::gathering && !m.has_joined), joins(u32(c.user), decode_control<joining>(payload));
      case control_kind::connected:
        in_turn(phase_ == phase::connecting && !m.connected);
        m.connected = true;
        return if_connected();
      case control_kind::measured:
        in_turn(phase_ == phase::measuring && results_.size() == c.user);
        results_.push_back(checked(c, decode_control<measured>(payload)));
        m.has_measured = true;
        return measure_next();
      case control_kind::ready:
        in_turn(phase_ == phase::preparing && !m.ready);
        m.ready = true;
        return if_ready();
      case control_kind::report:
        in_turn((phase_ == phase::running || phase_ == phase::collecting) && reports_.works(c.user));
        reports_.add(c.user, decode_control<report>(payload), grants_.granted());
        return reported();
      case control_kind::stop:
        host_.on_text("'" + m.name + "' was asked to stop: stopping after the steps under way");
        return request_stop();
      case control_kind::failed: return break_off(detail::error_of(decode_control<failure>(payload)));
      default: fail(errc::protocol, c.label(), " sends a control message of kind ", h.edge, ", which is not for a broker");
    }
  }

  // --- waiting is bounded
  void expect_within(nanoseconds t) {
    loop_.cancel(deadline_);
    deadline_ = loop_.after(t, [this, t] { not_ready_within(t); });
  }
  void not_ready_within(nanoseconds t) {
    struct wait {
      bool member::*done;
      const char *what, *remedy;
    };
    const wait w = phase_ == phase::gathering    ? wait{&member::has_joined, " did not join", "start every peer with this broker's address"}
                   : phase_ == phase::connecting ? wait{&member::connected, " did not reach all other peers", "see which addresses the peers announce"}
                   : phase_ == phase::measuring  ? wait{&member::has_measured, " did not finish measuring", "see what holds it up"}
                                                 : wait{&member::ready, " did not get ready", "see what holds it up"};
    const std::string who = members_.titles_where([&](u32 i) { return !(members_[i].*w.done) && (phase_ != phase::measuring || i == results_.size()); });
    break_off(error(errc::timeout, who + w.what + " within " + detail::in_seconds(t) + ": " + w.remedy + ", or raise connect_timeout"));
  }
  // From the first grant on. Peers watch each other's messages more closely and name what is missing: they come first.
  void watch() {
    const nanoseconds most = settings_.step_timeout + settings_.silence_timeout;
    deadline_ = loop_.after((std::max)(nanoseconds(1), most / 8), [this] { watch(); });
    if (asks_ && asks_->idle()) progressed_ = loop_.now();  // it is the user who is waited for
    if (loop_.now() - progressed_ <= most) return;
    if (asks_)
      return break_off(error(errc::timeout, members_.title(u64(asks_->asker().owing())) + " did not answer within " + detail::in_seconds(loop_.now() - progressed_) +
                                                ": see what holds it up, or raise step_timeout"));
    const bool collecting = phase_ == phase::collecting;
    const u64 least = reports_.slowest(settings_.steps);
    const std::string who = members_.titles_where([&](u32 i) { return reports_.works(i) && (collecting ? state_.owes(i) : reports_.done(i) == least); });
    break_off(error(errc::timeout, who + " did not send " + (collecting ? "the state of" : "a report of") + " step " + std::to_string(least) +
                                       " within " + detail::in_seconds(loop_.now() - progressed_) +
                                       ": see what holds it up, or raise step_timeout"));
  }

  // --- gathering
  void joins(u32 rank, joining j) {
    try {
      join(members_, rank, std::move(j));
    } catch (const error& e) {
      return break_off(e);
    }
    if (!members_.all(&member::has_joined)) return;
    real_ = dtype{u8(members_[rank].joined.real)};
    phase_ = phase::connecting;
    expect_within(settings_.gather_timeout);
    tell_all(control_kind::roster, roster_of(members_, settings_));
  }
  void if_connected() {
    if (!members_.all(&member::connected)) return;
    if (settings_.machines) return make_plan(cost_model(first_machines(*settings_.machines, settings_.peers), model_.encoded_bytes));
    phase_ = phase::measuring;
    host_.on_text("measuring devices and links");
    measure_next();
  }
  void measure_next() {
    expect_within(settings_.gather_timeout);
    if (results_.size() < members_.size()) return tell(members_[results_.size()], control_kind::measure, nothing{});
    make_plan(measured_machines(members_, results_, model_.encoded_bytes));
  }

  // --- a plan
  void make_plan(const cost_model& costs) {
    phase_ = phase::preparing;
    expect_ready();
    try {
      plan_ = plan_run(model_, settings_, costs);
      owners_ = owners_of(model_.graph, plan_);
      host_.on_plan(plan_, costs);
      compare_arithmetic();
      if (resumes_) history_ = host_.saved_history();
      if (!settings_.outputs.empty()) asks_.emplace(model_.graph, plan_, settings_.outputs, real_);
      if (asks_) sending_ = asks_->weights_to_send(members_.size());
      else if (resumes_) sending_ = parts_to_send(owners_, members_.size());
      assign(costs);
    } catch (const error& e) {
      break_off(e);
    }
  }
  /// Errors: config, where the same bits are insisted on.
  void compare_arithmetic() {
    const std::string ways = unequal_arithmetic(members_, [&](u32 rank) { return plan_.stage_of_peer(int(rank)) >= 0; });
    if (ways.empty()) return;
    if (settings_.strict_bits)
      fail(errc::config, "peers do not compute alike (", ways, ") and strict_bits is on: use one kind of device and machine, or a plan without the others");
    host_.on_warning("peers do not compute alike (" + ways + "): losses and weights have not the bits that a run on one kind has, and other plans give others");
  }
  void expect_ready() {
    const bool state = resumes_ || asks_;
    expect_within(state ? (std::max)(settings_.gather_timeout, settings_.step_timeout) : settings_.gather_timeout);
  }
  void assign(const cost_model& costs) {
    const planning_problem problem = problem_of(model_, settings_, costs);
    const loss_history::state losses = history_.numbers();
    for (u32 i = 0; i < members_.size(); ++i) {
      assignment a = to_message(plan_);
      a.resumes = resumes_ || asks_;
      if (asks_) a.outputs = asks_->outputs_for(problem, int(i), settings_.emulate);
      else if (resumes_) a.history.assign(losses.begin(), losses.end());
      if (settings_.emulate && !asks_) {
        a.holds = holds_of(problem, plan_, int(i));
        a.update_hold = update_hold_of(problem, plan_, int(i));
      }
      send_control(*members_[i].c, control_kind::assignment, a);
      if (a.resumes) send_next_part(int(i));
    }
  }
  // Of the saved state, or of the weights that questions need. The next one follows when this one has left, so that one
  // tensor a peer is in memory.
  void send_next_part(int rank) {
    connection& c = *members_[u64(rank)].c;
    try {
      const state_part next = sending_.next(u64(rank));
      if (!next) return send_restored(c);
      outgoing m = state_message(next);
      const parameter_info& info = model_.graph.params[std::size_t(next.parameter)];
      const auto bytes = host_.saved(next.parameter, int(next.part));
      if (bytes.size() != info.count() * size_of(weights_beside(real_)))
        fail(errc::checkpoint, "the saved state has ", bytes.size(), " bytes of ", info.path.view(), ", expected ", info.count() * size_of(weights_beside(real_)),
             ": it is of another model or precision");
      m.owned.assign(bytes.begin(), bytes.end());
      m.tag = part_tag;
      c.send(std::move(m));
    } catch (const error& e) {
      break_off(e);
    }
  }
  void send_restored(connection& c) {
    // Of the level below the state's, whose last part it must not overtake.
    outgoing last;
    last.header.kind = frame_kind::control;
    last.header.edge = u32(control_kind::restored);
    last.owned = encode_control(step_number{first_step_});
    last.level = priority::last;
    c.send(std::move(last));
  }
  void if_ready() {
    if (!members_.all(&member::ready)) return;
    loop_.cancel(deadline_);
    progressed_ = loop_.now();
    if (asks_) {
      phase_ = phase::answering;
      return watch();
    }
    phase_ = phase::running;
    flags works;
    for (u32 i = 0; i < members_.size(); ++i) works.push_back(plan_.stage_of_peer(int(i)) >= 0);
    reports_.begin(model_.graph, plan_, std::move(works), members_.titles(), first_step_);
    watch();
    grants_.go_on_from(first_step_);
    advance();
  }

  // --- running
  void advance() {
    const u64 done = reports_.slowest(settings_.steps);
    if (grants_.rests_at(done)) return collect(done);
    if (grants_.extend(done)) tell_all(control_kind::grant, step_number{grants_.granted()});
  }
  void reported() {
    while (const auto s = reports_.take()) {
      try {
        host_.on_step(*s);
      } catch (const error& e) {
        return break_off(e);  // not the fault of the peer whose report was the last
      }
      history_.add(s->loss, s->skipped);
      if (const u64 most = settings_.skipping.most_in_row; most && history_.skipped_in_row() >= most)
        return break_off(diverged(s->step, history_, s->reason));
    }
    advance();
  }

  // --- state
  void collect(u64 step) {
    phase_ = phase::collecting;
    bool waits = false;
    try {
      waits = !host_.can_collect();
    } catch (const error& e) {
      return break_off(e);
    }
    if (waits) {
      progressed_ = loop_.now();  // no peer holds it up
      collecting_ = loop_.after(20 * millisecond, [this, step] { collect(step); });
      return;
    }
    state_.begin(step, model_.graph, owners_, weights_beside(real_), members_.size());
    for (u32 i = 0; i < members_.size(); ++i)
      if (reports_.works(i)) tell(members_[i], control_kind::collect, step_number{step});
    if_collected();
  }
  void if_collected() {
    if (ended_ || !state_.complete()) return;
    try {
      host_.on_state(state_.step(), history_);
    } catch (const error& e) {
      return break_off(e);  // not the fault of the peer whose message was the last
    }
    const u64 step = state_.step();
    if (!grants_.ends_at(step)) {
      phase_ = phase::running;
      grants_.go_on_from(step);
      return advance();
    }
    tell_all(control_kind::finish, nothing{});
    if (step < settings_.steps) end(error(errc::interrupted, "stopped after step " + std::to_string(step)));
    else end(error(errc::ok, "the run has finished"));
  }

  void end(const error& why) {
    if (ended_) return;
    ended_ = true;
    links_.stop();
    for (timer_id t : {deadline_, collecting_}) loop_.cancel(t);
    net_.stop_listening();
    const bool fine = why.code() == errc::ok || why.code() == errc::interrupted;
    for (const member& m : members_)
      if (m.c && m.c->is_open()) m.c->close(fine ? errc::ok : why.code(), why.what());
    host_.on_end(why);
  }

  static constexpr u64 part_tag = 1;

  const model_binding& model_;
  cluster_settings settings_;
  transport& net_;
  reactor& loop_;
  broker_host& host_;
  watched_links links_;
  members members_;
  phase phase_ = phase::gathering;
  timer_id deadline_, collecting_;
  std::vector<measured> results_;  ///< by rank, of those that have measured
  dtype real_ = dtype::f32;
  plan plan_;
  std::vector<parameter_owners> owners_;
  std::optional<broker_questions> asks_;
  step_grants grants_;
  step_reports reports_;
  loss_history history_;
  parts_to_send sending_;
  collected_state state_;
  nanoseconds progressed_ = 0;
  bool resumes_ = false;
  u64 first_step_ = 0;
  bool ended_ = false;
};

}  // namespace fusionllm::inline v0
