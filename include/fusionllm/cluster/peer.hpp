// SPDX-License-Identifier: Apache-2.0
// A peer of a run, as a state machine on a reactor: it joins the broker, reaches the other peers, measures when asked,
// and then runs the steps that it was granted, or answers questions. It ends once, with an error whose code is ok when the
// run has finished.
//
// How long it waits: gather_timeout to reach the broker and each other peer, silence_timeout for a word from any of them,
// step_timeout for anything to happen in a step. What it waits for between steps is the broker's to bound.
#pragma once

#include "../runtime/warm_up.hpp"
#include "assigned_work.hpp"
#include "link_probes.hpp"
#include "peer_host.hpp"
#include "question_plan.hpp"
#include "state_parts.hpp"
#include "step_reports.hpp"

namespace fusionllm::inline v0 {

class peer_node : private connection_handler, private engine_host, private forward_host {
 public:
  peer_node(const model_binding& model, const cluster_settings& s, peer_options o, transport& net, paced_links* paces,
            device_queue& queue, peer_host& host)
      : model_(model),
        settings_(s),
        options_(std::move(o)),
        net_(net),
        loop_(net.loop()),
        queue_(queue),
        host_(host),
        choice_(model.device(options_.device)),
        context_(choice_.make(options_.device, options_.threads)),
        links_(loop_, s.heartbeat, s.silence_timeout, [this](const error& e) { break_off(in_my_name(e)); }),
        others_(options_.rank, s.peers, net, paces, s.gather_timeout),
        probes_(others_, loop_) {
    if (options_.rank >= u32(s.peers))
      fail(errc::config, "rank is ", options_.rank, ", expected 0 to ", s.peers - 1, " for peers = ", s.peers);
  }
  ~peer_node() override {
    queue_.drain();
    for (timer_id t : {watchdog_, next_, patience_}) loop_.cancel(t);
  }
  peer_node(const peer_node&) = delete;
  peer_node& operator=(const peer_node&) = delete;

  /// Listens and dials; everything else follows from events. Errors: network.
  void start() {
    listening_ = net_.listen(options_.bind, *this);
    broker_ = net_.connect({options_.broker, "broker", settings_.gather_timeout, true}, *this);
    watch();
  }

  const address& listening() const { return listening_; }
  bool ended() const { return ended_; }
  /// Null unless it has a part in steps, or in answers.
  engine* the_engine() { return engine_.get(); }
  forward_stage* the_forward_stage() { return forward_.get(); }

  /// Its user wants the run to stop: the broker lets the granted steps end, saves and finishes. Before there are steps,
  /// this peer leaves at once.
  void request_stop() {
    if (ended_ || std::exchange(stop_asked_, true)) return;
    if (stage_ != stage::ready) return end(stopped());
    tell_broker(control_kind::stop, nothing{});
  }
  /// Ends this peer now, and tells the broker why.
  void break_off(const error& why) {
    if (ended_) return;
    if (broker_ && broker_->is_open()) send_failure(*broker_, why);
    end(why);
  }

 private:
  /// How far it has come: `connected` also rests between measuring and the plan; `restoring` has a plan.
  enum class stage { joining, meeting, connected, measuring, restoring, ready };

  device_binding device() { return {choice_.kernels, choice_.vectors, context_.get(), choice_.real}; }
  error stopped() const { return error(errc::interrupted, options_.name + " was stopped by its user"); }
  error in_my_name(const error& e) const { return error(e.code(), options_.name + ": " + e.what()); }
  bool is_broker(const connection& c) const { return broker_.get() == &c; }
  // What goes wrong in f is this peer's own and not that of whoever led here, be it the broker or the reactor.
  template <class F>
  void on_my_own(F&& f) {
    try {
      f();
    } catch (...) {
      fail_with(std::current_exception());
    }
  }
  template <class T>
  void tell_broker(control_kind kind, const T& x) {
    if (!ended_) on_my_own([&] { send_control(*broker_, kind, x); });
  }

  // --- connections
  std::string refusal(const hello& remote) override { return others_.refusal(remote); }
  void on_open(connection& c) override {
    if (ended_) return c.close(errc::handshake, "this peer has ended");
    if (const std::string why = stranger(c); !why.empty()) return c.close(errc::handshake, why);
    links_.add(c);
    if (is_broker(c)) {
      tell_broker(control_kind::joining, joining{std::string(choice_.name), options_.memory_bytes, u32(options_.threads), u32(choice_.real), choice_.arithmetic});
      return;
    }
    others_.add(c);
    if_all_met();
  }
  std::string stranger(const connection& c) const {
    if (!is_broker(c)) return others_.stranger(c);
    return c.remote().role == "broker" ? "" : "a broker was expected here, not a " + c.remote().role;
  }
  void on_closed(connection& c, const error& why) override {
    links_.remove(c);
    const bool mine = others_.remove(c);
    if (ended_) return;
    if (is_broker(c)) return end(why.code() == errc::ok ? error(errc::peer_lost, "the broker ended the run: " + std::string(why.what())) : why);
    if (!mine) return;
    if (why.code() == errc::ok) return has_left(why);
    break_off(in_my_name(why));
  }
  // Peers leave in good order when the run has finished: the broker's word to this one is on its way.
  void has_left(const error& why) {
    if (patience_) return;
    patience_ = loop_.after(settings_.silence_timeout, [this, text = std::string(why.what())] {
      patience_ = {};
      break_off(error(errc::peer_lost, options_.name + ": " + text + ", and the broker has not said that the run is over"));
    });
  }
  void on_rejected(const error&) override {}

  byte_span place(connection& c, const frame_header& h) override {
    if (ended_) return {};
    if (forward_ && h.kind == frame_kind::bulk && is_broker(c))
      return weights_memory(stage_ == stage::restoring ? &forward_->weights() : nullptr, model_.graph.params.size(), h);
    if (forward_ && h.kind >= frame_kind::activation && h.kind != frame_kind::bulk) return forward_->place(asker(c, h), h);
    if (h.kind == frame_kind::bulk && is_broker(c))
      return own_state_memory(engine_ && stage_ == stage::restoring ? &engine_->parameters() : nullptr, model_.graph, weights_beside(choice_.real), h);
    if (h.kind < frame_kind::activation || h.kind == frame_kind::bulk || is_broker(c)) return {};
    return expect_engine(c, h).place(h);
  }
  void on_message(connection& c, const frame_header& h, const_byte_span payload) override {
    links_.heard(c);
    if (ended_ || h.kind == frame_kind::heartbeat) return;
    if (h.kind == frame_kind::control) return is_broker(c) ? from_broker(h, payload) : from_peer(c, h, payload);
    if (h.kind == frame_kind::bulk && is_broker(c)) return;  // it was placed
    if (h.kind == frame_kind::bulk) return link_probes::answer(c, payload.size());
    if (forward_) return forward_->deliver(asker(c, h), h, payload);
    expect_engine(c, h).deliver(h, payload);
  }
  void on_sent(connection&, u64 tag) override {
    if (tag && engine_) engine_->sent(tag - 1);
    if (tag && forward_) forward_->sent(tag - 1);
  }
  /// Of a message about a question: who sends it.
  int asker(const connection& c, const frame_header& h) const {
    if (stage_ != stage::ready || (!is_broker(c) && h.source != c.remote().rank))
      fail(errc::protocol, c.label(), " sends a message of kind ", int(h.kind), " as peer ", h.source, ", which is not expected from it now");
    return is_broker(c) ? forward_stage::broker : int(c.remote().rank);
  }
  engine& expect_engine(const connection& c, const frame_header& h) {
    if (is_broker(c) || !engine_ || h.source != c.remote().rank)
      fail(errc::protocol, c.label(), " sends a message of kind ", int(h.kind), " as peer ", h.source, ", which is not expected from it now");
    return *engine_;
  }

  // --- the broker
  void from_broker(const frame_header& h, const_byte_span payload) {
    const auto in_turn = [&](bool yes) {
      if (!yes) fail(errc::protocol, "the broker sends a control message of kind ", h.edge, " out of turn");
    };
    switch (control_kind(h.edge)) {
      case control_kind::roster:
        in_turn(stage_ == stage::joining);
        others_.meet(decode_control<roster>(payload), *this);
        stage_ = stage::meeting;
        return if_all_met();
      case control_kind::measure: return in_turn(stage_ == stage::connected), measure();
      case control_kind::assignment: return in_turn(stage_ == stage::connected), prepare(decode_control<assignment>(payload));
      case control_kind::restored: {
        in_turn(stage_ == stage::restoring);
        const auto step = decode_control<step_number>(payload).step;
        if (engine_) engine_->set_next_step(step);
        return say_ready();
      }
      case control_kind::grant: {
        const auto until = decode_control<step_number>(payload).step;
        in_turn(stage_ == stage::ready && until >= granted_);
        if (granted_ == 0) others_.begin_counting();
        granted_ = until;
        return on_my_own([&] { next_step(); });
      }
      case control_kind::collect: return in_turn(stage_ == stage::ready), give_state(decode_control<step_number>(payload).step);
      case control_kind::finish: return end(stop_asked_ ? stopped() : error(errc::ok, "the run has finished"));
      case control_kind::failed: return end(detail::error_of(decode_control<failure>(payload)));
      default: fail(errc::protocol, "the broker sends a control message of kind ", h.edge, ", which is not for peers");
    }
  }
  void from_peer(connection& c, const frame_header& h, const_byte_span payload) {
    if (control_kind(h.edge) != control_kind::probe_answer || stage_ != stage::measuring ||
        !probes_.answered(c, decode_control<step_number>(payload).step))
      fail(errc::protocol, c.label(), " sends a control message of kind ", h.edge, ", which is not for peers");
    if_measured();
  }
  void if_all_met() {
    if (stage_ != stage::meeting || !others_.complete()) return;
    stage_ = stage::connected;
    tell_broker(control_kind::connected, nothing{});
  }

  // --- measuring: first the device, then its links
  void measure() {
    stage_ = stage::measuring;
    queue_.submit([this] { samples_ = warm_up(model_.graph, device(), settings_.micro_batch_bounds()); }, 0,
                  [this](const completion& c) {
                    if (c.failure) return fail_with(c.failure);
                    on_my_own([&] { probes_.begin(); });
                    if_measured();
                  });
  }
  void if_measured() {
    if (ended_ || !probes_.done()) return;
    measured m;
    for (const auto& s : samples_) m.samples.push_back({s.kind, u32(s.way == direction::backward), s.flops, s.bytes, s.took});
    m.probes = probes_.results();
    stage_ = stage::connected;
    tell_broker(control_kind::measured, m);
  }

  // --- a plan
  void prepare(const assignment& a) {
    const plan p = from_message(a, model_.graph, settings_.peers);
    stage_ = stage::restoring;
    const int rank = int(options_.rank);
    if (p.stage_of_peer(rank) < 0) return a.resumes ? void() : say_ready();  // a spare
    std::vector<std::string> names;
    for (u32 r = 0; r < others_.size(); ++r) names.push_back(others_.name_of(r));
    if (!a.outputs.empty()) {
      if (!a.resumes) fail(errc::protocol, "the broker wants answers and sends no weights");
      forward_ = std::make_unique<forward_stage>(model_.graph, p, device(), forward_options_of(a, model_.graph, p, rank, std::move(names)), queue_,
                                                 static_cast<forward_host&>(*this));
      return;
    }
    engine_ = std::make_unique<engine>(model_.graph, p, device(), engine_options_of(a, p, rank, model_, settings_, std::move(names)), loop_,
                                       queue_, static_cast<engine_host&>(*this));
    flags mine(p.stage_of.size(), u8(0));
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = p.stage_of[i] == p.stage_of_peer(rank);
    inputs_ = inputs_read_by(model_.graph, mine);
    data_.inputs.assign(model_.graph.nodes.size(), nullptr);
    if (!a.resumes) say_ready();
  }
  void say_ready() {
    stage_ = stage::ready;
    tell_broker(control_kind::ready, nothing{});
  }

  // --- steps
  void next_step() {
    if (ended_ || !engine_ || !engine_->idle() || engine_->next_step() >= granted_) return;
    data_.step = engine_->next_step();
    host_.load(data_.step, inputs_, data_);
    engine_->start(data_);
  }
  void send(int to, const frame_header& h, std::span<const std::byte> payload, u64 tag) override {
    outgoing m;
    const bool tensor = h.kind == frame_kind::activation || h.kind == frame_kind::cotangent;
    m.level = h.kind == summary_kind || h.kind == verdict_kind ? priority::control : priority::tensor;
    m.deadline = i64(h.step) * (1 << 24) + (tensor ? i64(h.micro_batch) : 1 << 23);
    send(*engine_, others_.at(u64(to)), std::move(m), h, payload, tag);
  }
  void send_forward(int to, const frame_header& h, const_byte_span payload, u64 tag) override {
    outgoing m;
    m.level = priority::tensor;
    m.deadline = i64(h.step);
    send(*forward_, to == forward_stage::broker ? broker_.get() : others_.at(u64(to)), std::move(m), h, payload, tag);
  }
  /// `work` may use the payload's memory again once it is told so.
  template <class Work>
  void send(Work& work, connection* c, outgoing m, const frame_header& h, const_byte_span payload, u64 tag) {
    m.header = h;
    m.parts[0] = payload;
    m.tag = tag + 1;
    try {
      if (!c || !c->send(std::move(m))) work.sent(tag);
    } catch (const error& e) {
      work.sent(tag);
      break_off(in_my_name(e));
    }
  }
  void on_step(const step_report& r) override {
    report m = to_message(r);
    for (const auto& t : engine_->traffic()) {
      const neighbours::sent s = others_.sent_to(u32(t.to));
      m.traffic.push_back({u32(t.to), t.messages, t.raw, t.encoded, s.wire, s.busy});
    }
    tell_broker(control_kind::report, m);
    if (ended_) return;
    next_ = loop_.after(0, [this] {
      next_ = {};
      on_my_own([&] { next_step(); });
    });
  }
  void on_failure(const error& e) override { break_off(in_my_name(e)); }
  void fail_with(const std::exception_ptr& p) {
    try {
      std::rethrow_exception(p);
    } catch (const error& e) {
      on_failure(e);
    } catch (const std::exception& e) {
      on_failure(error(errc::internal, e.what()));
    }
  }

  // It rests until the next grant.
  void give_state(u64 step) {
    if (!engine_) return;
    if (!engine_->idle() || engine_->next_step() != step)
      fail(errc::protocol, "the broker collects the state of step ", step, ", this peer is at step ", engine_->next_step());
    on_my_own([&] { send_own_state(*broker_, model_.graph, engine_->parameters(), weights_beside(choice_.real), step, options_.rank); });
  }

  // --- waiting is bounded
  void watch() {
    watchdog_ = loop_.after((std::min)(settings_.step_timeout / 4 + 1, second), [this] { watch(); });
    if (engine_) watch(*engine_);
    if (forward_) watch(*forward_);
  }
  template <class Work>
  void watch(const Work& work) {
    if (work.busy()) ++beats_;  // computing is not waiting
    links_.progress = work.progress() + beats_;
    if (work.idle() || links_.progress != progress_) {
      progress_ = links_.progress;
      progressed_ = loop_.now();
      return;
    }
    if (loop_.now() - progressed_ < settings_.step_timeout) return;
    break_off(error(errc::timeout, options_.name + " has been waiting " + detail::in_seconds(loop_.now() - progressed_) + " for " +
                                       work.waiting_for() + ": see what holds it up, or raise step_timeout"));
  }
  void end(const error& why) {
    if (ended_) return;
    ended_ = true;
    links_.stop();
    for (timer_id* t : {&watchdog_, &next_, &patience_}) loop_.cancel(std::exchange(*t, {}));
    net_.stop_listening();
    const std::string reason = why.code() == errc::ok ? "finished" : why.what();
    others_.close_all(why.code(), reason);
    if (broker_) broker_->close(why.code(), reason);
    host_.on_end(why);
  }

  const model_binding& model_;
  cluster_settings settings_;
  peer_options options_;
  transport& net_;
  reactor& loop_;
  device_queue& queue_;
  peer_host& host_;
  const device_choice& choice_;
  std::unique_ptr<device_context> context_;
  watched_links links_;
  address listening_;
  connection_ptr broker_;
  neighbours others_;
  link_probes probes_;
  stage stage_ = stage::joining;
  bool ended_ = false, stop_asked_ = false;
  std::vector<operator_sample> samples_;
  std::unique_ptr<engine> engine_;
  std::unique_ptr<forward_stage> forward_;
  std::vector<int> inputs_;
  step_data data_;
  u64 granted_ = 0;
  timer_id watchdog_, next_, patience_;
  u64 beats_ = 0;
  u64 progress_ = ~u64(0);
  nanoseconds progressed_ = 0;
};

}  // namespace fusionllm::inline v0
