// SPDX-License-Identifier: Apache-2.0
// A peer of a run, as a state machine on a reactor: it joins the broker, reaches the other peers, measures when asked,
// and then runs the steps that it was granted. It ends once, with an error whose code is ok when the run has finished.
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
        links_(loop_, s.heartbeat, s.silence_timeout, [this](const error& e) { break_off(e); }),
        others_(std::size_t(s.peers), nullptr) {
    if (options_.rank >= u32(s.peers))
      fail(errc::config, "rank is ", options_.rank, ", expected 0 to ", s.peers - 1, " for peers = ", s.peers);
  }
  ~peer_node() override { loop_.cancel(watchdog_); }

  /// Listens and dials; everything else follows from events. Errors: network.
  void start() {
    listening_ = net_.listen(options_.bind, *this);
    broker_ = net_.connect({options_.broker, "broker", settings_.gather_timeout, true}, *this);
    watch();
  }

  const address& listening() const { return listening_; }
  bool ended() const { return ended_; }
  engine* the_engine() { return engine_.get(); }

  /// Ends this peer now, and tells the broker why.
  void break_off(const error& why) {
    if (ended_) return;
    if (broker_ && broker_->is_open()) send_control(*broker_, control_kind::failed, failure{u32(why.code()), why.what()});
    end(why);
  }

 private:
  device_binding device() { return {choice_.kernels, choice_.vectors, context_.get(), choice_.real}; }
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
    links_.add(c);
    if (is_broker(c)) {
      send_control(c, control_kind::joining, joining{std::string(choice_.name), options_.memory_bytes, u32(options_.threads)});
      return;
    }
    others_[c.remote().rank] = &c;
    report_connected();
  }
  void on_closed(connection& c, const error& why) override {
    links_.remove(c);
    for (auto& o : others_)
      if (o == &c) o = nullptr;
    if (ended_) return;
    if (is_broker(c)) return end(why.code() == errc::ok ? error(errc::peer_lost, "the broker ended the run: " + std::string(why.what())) : why);
    if (finishing_ || why.code() == errc::ok) return;  // it heard of the end first
    break_off(error(why.code() == errc::ok ? errc::peer_lost : why.code(), options_.name + ": " + why.what()));
  }
  void on_rejected(const error&) override {}

  byte_span place(connection& c, const frame_header& h) override {
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
    switch (control_kind(h.edge)) {
      case control_kind::roster: return meet(decode_control<roster>(payload));
      case control_kind::measure: return measure();
      case control_kind::assignment: return prepare(decode_control<assignment>(payload));
      case control_kind::restored: {
        const auto step = decode_control<step_number>(payload).step;
        if (engine_) engine_->set_next_step(step);
        return say_ready();
      }
      case control_kind::grant:
        granted_ = decode_control<step_number>(payload).step;
        return next_step();
      case control_kind::collect: return send_state(decode_control<step_number>(payload).step);
      case control_kind::finish:
        finishing_ = true;
        return end(error(errc::ok, "the run has finished"));
      case control_kind::failed: {
        const auto f = decode_control<failure>(payload);
        return end(error(errc(f.code), f.text));
      }
      default: fail(errc::protocol, "the broker sends a control message of kind ", h.edge, ", which is not for peers");
    }
  }

  void meet(roster r) {
    roster_ = std::move(r);
    for (const auto& p : roster_.paces)
      if (paces_ && p.from == options_.rank)
        for (const auto& m : roster_.members)
          if (m.rank == p.to) paces_->set(m.name, {.latency = p.latency, .bits_per_second = p.bits_per_second});
    for (const auto& m : roster_.members)
      if (m.rank < options_.rank)
        dialled_.push_back(net_.connect({parse_address(m.address), m.name, settings_.gather_timeout, true}, *this));
    met_ = true;
    report_connected();
  }
  void report_connected() {
    if (!met_ || connected_) return;
    for (u32 r = 0; r < others_.size(); ++r)
      if (r != options_.rank && !others_[r]) return;
    connected_ = true;
    send_control(*broker_, control_kind::connected, nothing{});
  }

  // --- measuring: first the device, then one peer after the other with a small and a large message
  void measure() {
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
    if (probe_rank_ >= others_.size()) return send_control(*broker_, control_kind::measured, measured_);
    outgoing m;
    m.header.kind = frame_kind::bulk;
    m.owned.resize(probe_count_ % 2 ? large_probe : small_probe);
    m.level = priority::tensor;
    probe_began_ = loop_.now();
    others_[probe_rank_]->send(std::move(m));
  }
  void answer_probe(connection& c, const_byte_span payload) { send_control(c, control_kind::probe_answer, step_number{payload.size()}); }
  void from_peer(connection& c, const frame_header& h, const_byte_span payload) {
    if (control_kind(h.edge) != control_kind::probe_answer || probe_rank_ >= others_.size() || others_[probe_rank_] != &c)
      fail(errc::protocol, c.label(), " sends a control message of kind ", h.edge, ", which is not for peers");
    const u64 bytes = decode_control<step_number>(payload).step;
    // The answer travels the other way: what it took is taken for the latency of one small message each way.
    const nanoseconds round_trip = loop_.now() - probe_began_;
    const nanoseconds took = bytes > small_probe ? std::max<nanoseconds>(round_trip - small_round_trip_ / 2, 1) : round_trip / 2;
    if (bytes <= small_probe) small_round_trip_ = round_trip;
    measured_.probes.push_back({probe_rank_, bytes, took});
    if (++probe_count_ == 2 * probe_pairs) {
      probe_count_ = 0;
      ++probe_rank_;
    }
    probe_next();
  }

  // --- a plan
  void prepare(const assignment& a) {
    const plan p = from_message(a, model_.graph, settings_.peers);
    if (p.stage_of_peer(int(options_.rank)) < 0) return say_ready();  // a spare
    engine_options e;
    e.self = int(options_.rank);
    e.seed = settings_.seed;
    e.bounds = settings_.micro_batch_bounds();
    e.optimizer = settings_.optimizer;
    e.make_codec = [this, p](const edge& x) { return codec_for(p, x); };
    e.holds.assign(a.holds.begin(), a.holds.end());
    e.update_hold = a.update_hold;
    e.epoch = a.epoch;
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
    local_parameter* x = engine_ && h.edge < model_.graph.params.size() ? engine_->parameters().find(int(h.edge)) : nullptr;
    const u64 bytes = x ? model_.graph.params[h.edge].count() * size_of(choice_.real) : 0;
    if (!x || h.micro_batch > 2 || h.total_length != bytes || (h.micro_batch && !x->primary))
      fail(errc::protocol, "the broker sends ", h.total_length, " bytes of part ", h.micro_batch, " of parameter ", h.edge,
           ", which this peer does not hold");
    return {h.micro_batch == 0 ? x->weight : h.micro_batch == 1 ? x->m : x->v, bytes};
  }
  void say_ready() { send_control(*broker_, control_kind::ready, nothing{}); }

  // --- steps
  void next_step() {
    if (ended_ || !engine_ || !engine_->idle() || engine_->next_step() >= granted_) return;
    data_.step = engine_->next_step();
    host_.load(data_.step, inputs_, data_);
    engine_->start(data_);
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
    if (!c->send(std::move(m))) engine_->sent(tag);
  }
  void on_step(const step_report& r) override {
    report m;
    m.step = r.step;
    m.loss = r.verdict.loss;
    m.gradient_norm = r.verdict.gradient_norm;
    m.learning_rate = r.learning_rate;
    m.skipped = r.verdict.skipped;
    m.elapsed = r.elapsed;
    m.computed = r.computed;
    for (const auto& t : engine_->traffic()) {
      const connection* c = others_[std::size_t(t.to)];
      const connection_statistics s = c ? c->statistics() : connection_statistics{};
      m.traffic.push_back({u32(t.to), t.messages, t.raw, t.encoded, s.wire_sent, s.busy_sending});
    }
    send_control(*broker_, control_kind::report, m);
    loop_.post([this] { next_step(); });
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
    watchdog_ = loop_.after((std::min)(settings_.step_timeout / 4, second), [this] { watch(); });
    const u64 now = engine_ ? engine_->progress() + (engine_->idle() ? u64(loop_.now()) : 0) : 0;
    if (now != progress_ || !engine_) {
      progress_ = now;
      progressed_ = loop_.now();
      return;
    }
    if (loop_.now() - progressed_ < settings_.step_timeout || engine_->busy()) return;
    break_off(error(errc::timeout, options_.name + " has been waiting " + std::to_string((loop_.now() - progressed_) / second) + " s for " +
                                       engine_->waiting_for() + ": see what holds it up, or raise step_timeout"));
  }
  void end(const error& why) {
    if (ended_) return;
    ended_ = true;
    links_.stop();
    loop_.cancel(watchdog_);
    net_.stop_listening();
    for (connection* c : others_)
      if (c) c->close(why.code(), why.code() == errc::ok ? "finished" : why.what());
    if (broker_ && broker_->is_open()) broker_->close(why.code(), why.code() == errc::ok ? "finished" : why.what());
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
  std::vector<connection_ptr> dialled_;
  std::vector<connection*> others_;  ///< by rank
  roster roster_;
  bool met_ = false, connected_ = false, finishing_ = false, ended_ = false;
  std::vector<operator_sample> samples_;
  measured measured_;
  u32 probe_rank_ = ~0u;
  int probe_count_ = 0;
  nanoseconds probe_began_ = 0, small_round_trip_ = 0;
  std::unique_ptr<engine> engine_;
  std::vector<int> inputs_;
  step_data data_;
  u64 granted_ = 0;
  timer_id watchdog_;
  u64 progress_ = ~u64(0);
  nanoseconds progressed_ = 0;
};

}  // namespace fusionllm::inline v0
