// SPDX-License-Identifier: Apache-2.0
// A peer of a run, as a state machine on a reactor: it joins the broker, reaches the other peers, measures when asked,
// and then runs the steps that it was granted. It ends once, with an error whose code is ok when the run has finished.
//
// How long it waits: gather_timeout to reach the broker and each other peer, silence_timeout for a word from any of them,
// step_timeout for anything to happen in a step. What it waits for between steps is the broker's to bound.
#pragma once

#include "../runtime/engine.hpp"
#include "../runtime/warm_up.hpp"
#include "../transport/paced.hpp"
#include "links.hpp"
#include "planning.hpp"

namespace fusionllm::inline v0 {

struct peer_options {
  u32 rank = 0;
  std::string name;      ///< for messages
  address bind;          ///< for other peers
  address broker;
  std::string device;    ///< one of those compiled in; empty: the first
  int threads = 1;
  u64 memory_bytes = 0;
};

/// What a peer needs of its process.
class peer_host {
 public:
  virtual ~peer_host() = default;
  /// Fills the inputs that `nodes` (placeholders) name, for the whole batch of `step`, into memory that stays until the
  /// next call, and sets data.inputs, rows and time.
  virtual void load(u64 step, std::span<const int> nodes, step_data& data) = 0;
  virtual void on_end(const error& why) = 0;
};

class peer_node : private connection_handler, private engine_host {
 public:
  peer_node(const model_binding& model, const cluster_settings& s, peer_options o, transport& net, paced_links* paces,
            device_queue& queue, peer_host& host)
      : model_(model),
        settings_(s),
        options_(std::move(o)),
        net_(net),
        loop_(net.loop()),
        paces_(paces),
        queue_(queue),
        host_(host),
        choice_(model.device(options_.device)),
        context_(choice_.make_context(options_.threads)),
        links_(loop_, s.heartbeat, s.silence_timeout, [this](const error& e) { break_off(error(e.code(), options_.name + ": " + e.what())); }),
        others_(std::size_t(s.peers), nullptr) {
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
  engine* the_engine() { return engine_.get(); }

  /// Its user wants the run to stop: the broker lets the granted steps end, saves and finishes. Before there are steps,
  /// this peer leaves at once.
  void request_stop() {
    if (ended_ || std::exchange(stop_asked_, true)) return;
    if (stage_ != stage::ready) return end(stopped());
    send_control(*broker_, control_kind::stop, nothing{});
  }
  /// Ends this peer now, and tells the broker why.
  void break_off(const error& why) {
    if (ended_) return;
    if (broker_ && broker_->is_open()) send_control(*broker_, control_kind::failed, failure{u32(why.code()), why.what()});
    end(why);
  }

 private:
  /// How far it has come: `connected` also rests between measuring and the plan; `restoring` has a plan.
  enum class stage { joining, meeting, connected, measuring, restoring, ready };

  device_binding device() { return {choice_.kernels, choice_.vectors, context_.get(), choice_.real}; }
  error stopped() const { return error(errc::interrupted, options_.name + " was stopped by its user"); }
  bool is_broker(const connection& c) const { return broker_.get() == &c; }
  std::string name_of(u32 rank) const {
    for (const auto& m : roster_.members)
      if (m.rank == rank) return m.name;
    return "peer " + std::to_string(rank);
  }

  // --- connections
  std::string refusal(const hello& remote) override {
    if (remote.role != "peer") return "this is a peer: only peers connect to it, not a " + remote.role;
    if (remote.rank >= u32(settings_.peers) || remote.rank == options_.rank)
      return "rank " + std::to_string(remote.rank) + " is not that of another peer of " + std::to_string(settings_.peers);
    return others_[remote.rank] ? "peer " + std::to_string(remote.rank) + " is connected already" : "";
  }
  void on_open(connection& c) override {
    if (ended_) return c.close(errc::handshake, "this peer has ended");
    if (const std::string why = stranger(c); !why.empty()) return c.close(errc::handshake, why);
    links_.add(c);
    if (is_broker(c)) {
      send_control(c, control_kind::joining, joining{std::string(choice_.name), options_.memory_bytes, u32(options_.threads)});
      return;
    }
    others_[c.remote().rank] = &c;
    report_connected();
  }
  /// Why an open connection is not the one that it should be; also two of one rank that came at the same time.
  std::string stranger(const connection& c) {
    const hello& r = c.remote();
    if (is_broker(c)) return r.role == "broker" ? "" : "a broker was expected here, not a " + r.role;
    if (const std::string why = refusal(r); !why.empty()) return why;
    for (const auto& d : dialled_)
      if (d.c.get() == &c && d.rank != r.rank)
        return "peer " + std::to_string(d.rank) + " was expected here, not peer " + std::to_string(r.rank);
    return "";
  }
  void on_closed(connection& c, const error& why) override {
    links_.remove(c);
    bool mine = std::any_of(dialled_.begin(), dialled_.end(), [&](const auto& d) { return d.c.get() == &c; });
    for (auto& o : others_)
      if (o == &c) {
        o = nullptr;
        mine = true;
      }
    if (ended_) return;
    if (is_broker(c)) return end(why.code() == errc::ok ? error(errc::peer_lost, "the broker ended the run: " + std::string(why.what())) : why);
    if (!mine) return;  // a stranger, whom this side turned away
    if (why.code() == errc::ok) return has_left(why);
    break_off(error(why.code(), options_.name + ": " + why.what()));
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
    if (h.kind == frame_kind::bulk && is_broker(c)) return state_memory(h);
    if (h.kind < frame_kind::activation || h.kind == frame_kind::bulk || is_broker(c)) return {};
    return expect_engine(c, h).place(h);
  }
  void on_message(connection& c, const frame_header& h, const_byte_span payload) override {
    links_.heard(c);
    if (ended_ || h.kind == frame_kind::heartbeat) return;
    if (h.kind == frame_kind::control) return is_broker(c) ? from_broker(h, payload) : from_peer(c, h, payload);
    if (h.kind == frame_kind::bulk && is_broker(c)) return;  // it was placed
    if (h.kind == frame_kind::bulk) return answer_probe(c, payload);
    expect_engine(c, h).deliver(h, payload);
  }
  void on_sent(connection&, u64 tag) override {
    if (tag && engine_) engine_->sent(tag - 1);
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
      case control_kind::roster: return in_turn(stage_ == stage::joining), meet(decode_control<roster>(payload));
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
        granted_ = until;
        return try_next_step();
      }
      case control_kind::collect: return in_turn(stage_ == stage::ready), send_state(decode_control<step_number>(payload).step);
      case control_kind::finish: return end(stop_asked_ ? stopped() : error(errc::ok, "the run has finished"));
      case control_kind::failed: return end(detail::error_of(decode_control<failure>(payload)));
      default: fail(errc::protocol, "the broker sends a control message of kind ", h.edge, ", which is not for peers");
    }
  }

  void meet(roster r) {
    if (r.members.size() != others_.size()) fail(errc::protocol, "the broker's list has ", r.members.size(), " peers, expected ", others_.size());
    for (u32 i = 0; i < r.members.size(); ++i)
      if (r.members[i].rank != i) fail(errc::protocol, "entry ", i, " of the broker's list has rank ", r.members[i].rank);
    roster_ = std::move(r);
    for (const auto& p : roster_.paces)
      if (paces_ && p.from == options_.rank && p.to < others_.size()) {
        const std::string& name = roster_.members[p.to].name;
        paces_->set(name, {.latency = p.latency, .bits_per_second = p.bits_per_second});
        // It may have been the faster one to hear who is where.
        if (connection* c = others_[p.to]) c->pace(paces_->find(name).on, p.latency);
      }
    stage_ = stage::meeting;
    for (u32 i = 0; i < options_.rank; ++i) {
      const auto& m = roster_.members[i];
      dialled_.push_back({net_.connect({parse_address(m.address), m.name, settings_.gather_timeout, true}, *this), i});
    }
    report_connected();
  }
  void report_connected() {
    if (stage_ != stage::meeting) return;
    for (u32 r = 0; r < others_.size(); ++r)
      if (r != options_.rank && !others_[r]) return;
    stage_ = stage::connected;
    send_control(*broker_, control_kind::connected, nothing{});
  }

  // --- measuring: first the device, then one peer after the other with a small and a large message
  void measure() {
    stage_ = stage::measuring;
    measured_ = {};
    queue_.submit([this] { samples_ = warm_up(model_.graph, device(), settings_.micro_batch_bounds()); }, 0,
                  [this](const completion& c) {
                    if (c.failure) return fail_with(c.failure);
                    for (const auto& s : samples_)
                      measured_.samples.push_back({s.kind, u32(s.way == direction::backward), s.flops, s.bytes, s.took});
                    probe_rank_ = 0;
                    probe_count_ = 0;
                    probe_next();
                  });
  }
  void probe_next() {
    while (probe_rank_ < others_.size() && !others_[probe_rank_]) ++probe_rank_;
    if (probe_rank_ >= others_.size()) {
      stage_ = stage::connected;
      return send_control(*broker_, control_kind::measured, measured_);
    }
    outgoing m;
    m.header.kind = frame_kind::bulk;
    m.owned.resize(probe_bytes());
    m.level = priority::tensor;
    probe_began_ = loop_.now();
    others_[probe_rank_]->send(std::move(m));
  }
  u64 probe_bytes() const { return probe_count_ % 2 ? large_probe : small_probe; }
  void answer_probe(connection& c, const_byte_span payload) { send_control(c, control_kind::probe_answer, step_number{payload.size()}); }
  void from_peer(connection& c, const frame_header& h, const_byte_span payload) {
    if (control_kind(h.edge) != control_kind::probe_answer || stage_ != stage::measuring || probe_rank_ >= others_.size() ||
        others_[probe_rank_] != &c || decode_control<step_number>(payload).step != probe_bytes())
      fail(errc::protocol, c.label(), " sends a control message of kind ", h.edge, ", which is not for peers");
    const u64 bytes = probe_bytes();
    // The answer travels the other way: what it took is taken for the latency of one small message each way.
    const nanoseconds round_trip = loop_.now() - probe_began_;
    const nanoseconds took = bytes > small_probe ? round_trip - small_round_trip_ / 2 : round_trip / 2;
    if (bytes <= small_probe) small_round_trip_ = round_trip;
    measured_.probes.push_back({probe_rank_, bytes, (std::max)(took, nanoseconds(1))});
    if (++probe_count_ == 2 * probe_pairs) {
      probe_count_ = 0;
      ++probe_rank_;
    }
    probe_next();
  }

  // --- a plan
  void prepare(const assignment& a) {
    const plan p = from_message(a, model_.graph, settings_.peers);
    stage_ = stage::restoring;
    if (p.stage_of_peer(int(options_.rank)) < 0) return a.resumes ? void() : say_ready();  // a spare
    engine_options e;
    e.self = int(options_.rank);
    e.seed = settings_.seed;
    e.bounds = settings_.micro_batch_bounds();
    e.optimizer = settings_.optimizer;
    e.make_codec = [this, p](const edge& x) { return codec_for(p, x); };
    e.holds.assign(a.holds.begin(), a.holds.end());
    e.update_hold = a.update_hold;
    e.epoch = a.epoch;
    e.skipping = settings_.skipping;
    if (!a.history.empty()) e.history = loss_history::from(a.history, errc::protocol);
    for (int r = 0; r < settings_.peers; ++r) e.names.push_back(name_of(u32(r)));
    engine_ = std::make_unique<engine>(model_.graph, p, device(), std::move(e), loop_, queue_, static_cast<engine_host&>(*this));
    for (int i = 0; i < model_.graph.size(); ++i)
      if (model_.graph.nodes[std::size_t(i)].op->placeholder && reads(p, i)) inputs_.push_back(i);
    data_.inputs.assign(model_.graph.nodes.size(), nullptr);
    if (!a.resumes) say_ready();
  }
  bool reads(const plan& p, int input) const {
    for (int i = 0; i < model_.graph.size(); ++i)
      if (p.stage_of[std::size_t(i)] == p.stage_of_peer(int(options_.rank)))
        for (int in : model_.graph.nodes[std::size_t(i)].in)
          if (in == input) return true;
    return false;
  }
  // The codec's type is the run's; its ratio that of the edge's link. A link that is not listed carries raw tensors.
  std::unique_ptr<codec> codec_for(const plan& p, const edge& e) const {
    for (const auto& c : p.codecs)
      for (int from : p.peers[std::size_t(e.from)])
        for (int to : p.peers[std::size_t(e.to)])
          if (c.from == from && c.to == to && c.codec != "none") {
            codec_options o = settings_.codec_details;
            o.ratio = c.ratio;
            return model_.make_codec(c.codec, o);
          }
    return model_.make_codec(no_compression::label, {});
  }
  byte_span state_memory(const frame_header& h) {
    local_parameter* x = engine_ && stage_ == stage::restoring && h.edge < model_.graph.params.size() ? engine_->parameters().find(int(h.edge)) : nullptr;
    const u64 bytes = x ? model_.graph.params[h.edge].count() * size_of(choice_.real) : 0;
    if (!x || h.micro_batch > 2 || h.total_length != bytes || (h.micro_batch && !x->primary))
      fail(errc::protocol, "the broker sends ", h.total_length, " bytes of part ", h.micro_batch, " of parameter ", h.edge,
           ", which this peer does not hold or does not expect now");
    return {h.micro_batch == 0 ? x->weight : h.micro_batch == 1 ? x->m : x->v, bytes};
  }
  void say_ready() {
    stage_ = stage::ready;
    send_control(*broker_, control_kind::ready, nothing{});
  }

  // --- steps
  void next_step() {
    if (ended_ || !engine_ || !engine_->idle() || engine_->next_step() >= granted_) return;
    data_.step = engine_->next_step();
    host_.load(data_.step, inputs_, data_);
    engine_->start(data_);
  }
  // What goes wrong, such as with its data, is this peer's own and not the broker's, whose grant may have led here.
  void try_next_step() {
    try {
      next_step();
    } catch (...) {
      fail_with(std::current_exception());
    }
  }
  void send(int to, const frame_header& h, std::span<const std::byte> payload, u64 tag) override {
    connection* c = others_[std::size_t(to)];
    if (!c) return engine_->sent(tag);
    outgoing m;
    m.header = h;
    m.parts[0] = payload;
    const bool tensor = h.kind == frame_kind::activation || h.kind == frame_kind::cotangent;
    m.level = h.kind == summary_kind || h.kind == verdict_kind ? priority::control : priority::tensor;
    m.deadline = i64(h.step) * (1 << 24) + (tensor ? i64(h.micro_batch) : 1 << 23);
    m.tag = tag + 1;
    try {
      if (!c->send(std::move(m))) engine_->sent(tag);
    } catch (const error& e) {
      engine_->sent(tag);
      break_off(error(e.code(), options_.name + ": " + e.what()));
    }
  }
  void on_step(const step_report& r) override {
    report m;
    m.step = r.step;
    m.loss = r.verdict.loss;
    m.gradient_norm = r.verdict.gradient_norm;
    m.learning_rate = r.learning_rate;
    const fault& f = r.verdict.first;
    m.skipped = u32(r.verdict.reason);
    m.mean_loss = r.verdict.mean_loss;
    m.kind = u32(f.kind), m.micro_batch = f.micro_batch, m.node = f.node, m.parameter = f.parameter, m.peer = f.peer;
    m.elapsed = r.elapsed;
    m.computed = r.computed;
    for (const auto& t : engine_->traffic()) {
      const connection* c = others_[std::size_t(t.to)];
      const connection_statistics s = c ? c->statistics() : connection_statistics{};
      m.traffic.push_back({u32(t.to), t.messages, t.raw, t.encoded, s.wire_sent, s.busy_sending});
    }
    send_control(*broker_, control_kind::report, m);
    next_ = loop_.after(0, [this] {
      next_ = {};
      try_next_step();
    });
  }
  void on_failure(const error& e) override { break_off(error(e.code(), options_.name + ": " + e.what())); }
  void fail_with(const std::exception_ptr& p) {
    try {
      std::rethrow_exception(p);
    } catch (const error& e) {
      on_failure(e);
    } catch (const std::exception& e) {
      on_failure(error(errc::internal, e.what()));
    }
  }

  // Weights and optimizer state of what this peer is the primary owner of. It rests until the next grant.
  void send_state(u64 step) {
    if (!engine_) return;
    if (!engine_->idle() || engine_->next_step() != step)
      fail(errc::protocol, "the broker collects the state of step ", step, ", this peer is at step ", engine_->next_step());
    for (const auto& x : engine_->parameters().parameters()) {
      if (!x.primary) continue;
      for (u32 part = 0; part < 3; ++part) {
        outgoing m;
        m.header.kind = frame_kind::bulk;
        m.header.edge = u32(x.parameter);
        m.header.micro_batch = part;
        m.header.step = step;
        m.header.source = options_.rank;
        const std::byte* from = part == 0 ? x.weight : part == 1 ? x.m : x.v;
        m.parts[0] = {from, model_.graph.params[std::size_t(x.parameter)].count() * size_of(choice_.real)};
        m.level = priority::bulk;
        broker_->send(std::move(m));
      }
    }
  }

  // --- waiting is bounded
  void watch() {
    watchdog_ = loop_.after((std::min)(settings_.step_timeout / 4 + 1, second), [this] { watch(); });
    if (!engine_) return;
    if (engine_->busy()) ++beats_;  // computing is not waiting
    links_.progress = engine_->progress() + beats_;
    if (engine_->idle() || links_.progress != progress_) {
      progress_ = links_.progress;
      progressed_ = loop_.now();
      return;
    }
    if (loop_.now() - progressed_ < settings_.step_timeout) return;
    break_off(error(errc::timeout, options_.name + " has been waiting " + detail::in_seconds(loop_.now() - progressed_) + " for " +
                                       engine_->waiting_for() + ": see what holds it up, or raise step_timeout"));
  }
  void end(const error& why) {
    if (ended_) return;
    ended_ = true;
    links_.stop();
    for (timer_id* t : {&watchdog_, &next_, &patience_}) loop_.cancel(std::exchange(*t, {}));
    net_.stop_listening();
    const std::string reason = why.code() == errc::ok ? "finished" : why.what();
    for (connection* c : others_)
      if (c && c->is_open()) c->close(why.code(), reason);
    for (const auto& d : dialled_)
      if (!d.c->is_open()) d.c->abort(why.code(), reason);
    if (broker_) broker_->close(why.code(), reason);
    host_.on_end(why);
  }

  static constexpr u64 small_probe = 1 << 10, large_probe = 256 << 10;
  static constexpr int probe_pairs = 2;

  const model_binding& model_;
  cluster_settings settings_;
  peer_options options_;
  transport& net_;
  reactor& loop_;
  paced_links* paces_;
  device_queue& queue_;
  peer_host& host_;
  const device_choice& choice_;
  std::unique_ptr<device_context> context_;
  watched_links links_;
  address listening_;
  connection_ptr broker_;
  struct outgoing_call {
    connection_ptr c;
    u32 rank;
  };
  std::vector<outgoing_call> dialled_;
  std::vector<connection*> others_;  ///< by rank
  roster roster_;
  stage stage_ = stage::joining;
  bool ended_ = false, stop_asked_ = false;
  std::vector<operator_sample> samples_;
  measured measured_;
  u32 probe_rank_ = ~0u;
  int probe_count_ = 0;
  nanoseconds probe_began_ = 0, small_round_trip_ = 0;
  std::unique_ptr<engine> engine_;
  std::vector<int> inputs_;
  step_data data_;
  u64 granted_ = 0;
  timer_id watchdog_, next_, patience_;
  u64 beats_ = 0;
  u64 progress_ = ~u64(0);
  nanoseconds progressed_ = 0;
};

}  // namespace fusionllm::inline v0
