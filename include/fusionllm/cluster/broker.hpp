// SPDX-License-Identifier: Apache-2.0
// The broker of a run, as a state machine on a reactor: it gathers the peers, has them measured, plans, and grants steps
// a few ahead of the slowest report, never past a step at which state is to be collected. It carries no tensors of a
// step: peers send those to each other.
//
// How long it waits: gather_timeout for each of joining, connecting, one peer's measuring and preparing; after that
// silence_timeout for a word from any one peer, and step_timeout + silence_timeout for anything to happen at all. Then the
// run ends for every peer, with an error that names whom it waited for.
#pragma once

#include "../runtime/messages.hpp"
#include "broker_host.hpp"
#include "collected_state.hpp"
#include "measurements.hpp"
#include "planning.hpp"
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
        resumes_(resumes || first_step > 0),
        first_step_(first_step) {
    if (s.peers < 1 || first_step > s.steps)
      fail(errc::config, "peers is ", s.peers, " and steps ", s.steps, ", expected at least 1 peer and the ", first_step, " steps that are done");
    if (s.machines && s.machines->size() < s.peers)
      fail(errc::config, "the topology has ", s.machines->size(), " devices, peers is ", s.peers, ": expected at most that many");
  }
  ~broker_node() override { loop_.cancel(deadline_); }
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
    stopping_ = true;
    if (phase_ == phase::running) advance();
    else if (phase_ != phase::collecting) break_off(error(errc::interrupted, "stopped before the first step"));
  }
  bool ended() const { return ended_; }
  const plan& the_plan() const { return plan_; }

  void break_off(const error& why) {
    if (ended_) return;
    members_.send(control_kind::failed, failure{u32(why.code()), why.what()});
    end(why);
  }

 private:
  enum class phase { gathering, connecting, measuring, preparing, running, collecting };

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
    if (h.kind != frame_kind::bulk) return {};
    if (phase_ != phase::collecting) collected_state::not_asked(c, h);
    return state_.place(c, h);
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
    if (h.kind != frame_kind::control) fail(errc::protocol, c.label(), " sends the broker a message of kind ", int(h.kind));
    from_peer(c, m, h, payload);
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
        reports_.add(c.user, decode_control<report>(payload), granted_);
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
    if (loop_.now() - progressed_ <= most) return;
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
      join(members_, rank, std::move(j), model_);
    } catch (const error& e) {
      return break_off(e);
    }
    if (!members_.all(&member::has_joined)) return;
    real_ = model_.device(members_[rank].joined.device).real;
    phase_ = phase::connecting;
    expect_within(settings_.gather_timeout);
    members_.send(control_kind::roster, roster_of(members_, settings_));
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
    if (results_.size() < members_.size()) return send_control(*members_[results_.size()].c, control_kind::measure, nothing{});
    make_plan(measured_machines(members_, results_, model_.encoded_bytes));
  }

  // --- a plan
  void make_plan(const cost_model& costs) {
    phase_ = phase::preparing;
    expect_within(resumes_ ? (std::max)(settings_.gather_timeout, settings_.step_timeout) : settings_.gather_timeout);
    try {
      plan_ = plan_run(model_, settings_, costs);
      owners_ = owners_of(model_.graph, plan_);
      host_.on_plan(plan_, costs);
      if (resumes_) history_ = host_.saved_history();
      assign(costs);
    } catch (const error& e) {
      break_off(e);
    }
  }
  void assign(const cost_model& costs) {
    const planning_problem problem = problem_of(model_, settings_, costs);
    const loss_history::state losses = history_.numbers();
    for (u32 i = 0; i < members_.size(); ++i) {
      assignment a = to_message(plan_);
      a.resumes = resumes_;
      if (resumes_) a.history.assign(losses.begin(), losses.end());
      if (settings_.emulate) {
        a.holds = holds_of(problem, plan_, int(i));
        a.update_hold = update_hold_of(problem, plan_, int(i));
      }
      send_control(*members_[i].c, control_kind::assignment, a);
      if (resumes_) send_state(int(i));
    }
  }
  void send_state(int rank) {
    connection& c = *members_[u64(rank)].c;
    for (int p = 0; p < int(owners_.size()); ++p) {
      const auto& holders = owners_[std::size_t(p)].holders;
      if (std::find(holders.begin(), holders.end(), rank) == holders.end()) continue;
      for (u32 part = 0; part < (owners_[std::size_t(p)].primary == rank ? state_parts : 1); ++part) {
        outgoing m = state_message(p, part);
        const parameter_info& info = model_.graph.params[std::size_t(p)];
        const auto bytes = host_.saved(p, int(part));
        if (bytes.size() != info.count() * size_of(real_))
          fail(errc::checkpoint, "the saved state has ", bytes.size(), " bytes of ", info.path.view(), ", expected ",
               info.count() * size_of(real_), ": it is of another model or precision");
        m.owned.assign(bytes.begin(), bytes.end());
        c.send(std::move(m));
      }
    }
    // Of the level below the state's, which it must not overtake.
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
    phase_ = phase::running;
    flags works;
    for (u32 i = 0; i < members_.size(); ++i) works.push_back(plan_.stage_of_peer(int(i)) >= 0);
    reports_.begin(model_.graph, plan_, std::move(works), members_.titles(), first_step_);
    watch();
    granted_ = first_step_;
    boundary_ = next_boundary(first_step_);
    advance();
  }

  // --- running
  u64 next_boundary(u64 from) const {
    const u64 every = settings_.checkpoint_interval;
    return every ? (std::min)(settings_.steps, (from / every + 1) * every) : settings_.steps;
  }
  void advance() {
    const u64 done = reports_.slowest(settings_.steps);
    if (stopping_) boundary_ = (std::min)(boundary_, granted_);
    if (done >= boundary_) return collect(done);
    const u64 until = (std::min)(boundary_, done + steps_ahead);
    if (until <= granted_) return;
    granted_ = until;
    members_.send(control_kind::grant, step_number{granted_});
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
    state_.begin(step, model_.graph, owners_, real_, members_.size());
    for (u32 i = 0; i < members_.size(); ++i)
      if (reports_.works(i)) send_control(*members_[i].c, control_kind::collect, step_number{step});
    if_collected();
  }
  void if_collected() {
    if (!state_.complete()) return;
    try {
      host_.on_history(history_);
      host_.on_state(state_.step(), [this](int p, int part) { return state_.part(p, part); });
    } catch (const error& e) {
      return break_off(e);  // not the fault of the peer whose message was the last
    }
    const u64 step = state_.step();
    if (step < settings_.steps && !stopping_) {
      phase_ = phase::running;
      boundary_ = next_boundary(step);
      return advance();
    }
    members_.send(control_kind::finish, nothing{});
    if (step < settings_.steps) end(error(errc::interrupted, "stopped after step " + std::to_string(step)));
    else end(error(errc::ok, "the run has finished"));
  }

  void end(const error& why) {
    if (ended_) return;
    ended_ = true;
    links_.stop();
    loop_.cancel(deadline_);
    net_.stop_listening();
    const bool fine = why.code() == errc::ok || why.code() == errc::interrupted;
    for (const member& m : members_)
      if (m.c && m.c->is_open()) m.c->close(fine ? errc::ok : why.code(), why.what());
    host_.on_end(why);
  }

  static constexpr u64 steps_ahead = 4;

  const model_binding& model_;
  cluster_settings settings_;
  transport& net_;
  reactor& loop_;
  broker_host& host_;
  watched_links links_;
  members members_;
  phase phase_ = phase::gathering;
  timer_id deadline_;
  std::vector<measured> results_;  ///< by rank, of those that have measured
  dtype real_ = dtype::f32;
  plan plan_;
  std::vector<parameter_owners> owners_;
  step_reports reports_;
  loss_history history_;
  collected_state state_;
  nanoseconds progressed_ = 0;
  bool resumes_ = false;
  u64 first_step_ = 0, granted_ = 0, boundary_ = 0;
  bool stopping_ = false, ended_ = false;
};

}  // namespace fusionllm::inline v0
