// SPDX-License-Identifier: Apache-2.0
// The broker of a run, as a state machine on a reactor: it gathers the peers, has them measured, plans, and grants steps
// a few ahead of the slowest report, never past a step at which state is to be collected. It carries no tensors of a
// step: peers send those to each other.
//
// How long it waits: gather_timeout for each of joining, connecting, one peer's measuring and preparing; after that
// silence_timeout for a word from any one peer, and step_timeout + silence_timeout for anything to happen at all. Then the
// run ends for every peer, with an error that names whom it waited for.
#pragma once

#include "../estimate/fit.hpp"
#include "../runtime/memory.hpp"
#include "../runtime/messages.hpp"
#include "links.hpp"
#include "planning.hpp"

namespace fusionllm::inline v0 {

/// One step of the whole run.
struct cluster_step {
  struct link {
    int from = 0, to = 0;
    u64 messages = 0, raw = 0, encoded = 0, wire = 0;  ///< in this step; wire: with headers and heartbeats
    nanoseconds busy = 0;
  };
  u64 step = 0;  ///< steps done, this one included
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  bool skipped = false;
  std::string reason;         ///< why it was skipped, as the end of a sentence
  nanoseconds elapsed = 0;    ///< the longest of any peer, from its first task to the end of its update
  nanoseconds predicted = 0;
  std::vector<link> links;
};

/// What a broker needs of its process.
class broker_host {
 public:
  virtual ~broker_host() = default;
  virtual void on_text(const std::string& line) { (void)line; }
  virtual void on_plan(const plan& p, const cost_model& costs) { (void)p, (void)costs; }
  virtual void on_step(const cluster_step& s) = 0;
  /// A complete state: `part(parameter, 0)` is its weights, 1 and 2 the optimizer's.
  virtual void on_state(u64 step, const std::function<std::span<const std::byte>(int, int)>& part) = 0;
  /// Asked when the run resumes: the same, of the state to resume from.
  virtual std::span<const std::byte> saved(int parameter, int part) { return (void)parameter, (void)part, std::span<const std::byte>{}; }
  /// The losses of the steps so far, which belong to the state that follows; and those of the state to resume from.
  virtual void on_history(const loss_history& h) { (void)h; }
  virtual loss_history saved_history() { return {}; }
  virtual void on_end(const error& why) = 0;
};

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
        peers_(std::size_t(s.peers)),
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
    for (auto& p : peers_)
      if (p.c) send_control(*p.c, control_kind::failed, failure{u32(why.code()), why.what()});
    end(why);
  }

 private:
  enum class phase { gathering, connecting, measuring, preparing, running, collecting };
  struct member {
    connection* c = nullptr;
    std::string name;
    joining joined;
    bool has_joined = false, connected = false, has_measured = false, ready = false;
    measured results;
    u64 progress = 0;
    u64 done = 0;
    u64 parts = 0;  ///< of the state, still to come
    report last;
  };

  // --- connections
  std::string refusal(const hello& remote) override {
    if (remote.role != "peer") return "this is a broker: peers connect to it, not a " + remote.role;
    if (remote.rank >= peers_.size())
      return "rank " + std::to_string(remote.rank) + ", expected 0 to " + std::to_string(peers_.size() - 1);
    if (peers_[remote.rank].c) return "rank " + std::to_string(remote.rank) + " is taken by '" + peers_[remote.rank].name + "'";
    return phase_ == phase::gathering ? "" : "the run has begun without it";
  }
  void on_open(connection& c) override {
    member& m = peers_[c.remote().rank];
    if (ended_ || m.c || phase_ != phase::gathering)  // two that came at the same time were both let in
      return c.close(errc::handshake, m.c ? "rank " + std::to_string(c.remote().rank) + " is taken by '" + m.name + "'" : "the run has begun without it");
    m.c = &c;
    m.name = c.remote().name;
    c.user = c.remote().rank;
    links_.add(c);
  }
  void on_closed(connection& c, const error& why) override {
    links_.remove(c);
    if (c.user >= peers_.size() || peers_[c.user].c != &c) return;
    peers_[c.user].c = nullptr;
    if (ended_) return;
    if (phase_ == phase::gathering) {
      peers_[c.user] = {};
      return host_.on_text(std::string("a peer left before the run began: ") + why.what());
    }
    break_off(error(why.code() == errc::ok ? errc::peer_lost : why.code(), why.what()));
  }
  void on_rejected(const error& why) override { host_.on_text(std::string("turned away: ") + why.what()); }

  byte_span place(connection& c, const frame_header& h) override {
    if (h.kind != frame_kind::bulk) return {};
    if (phase_ != phase::collecting || h.edge >= model_.graph.params.size() || h.micro_batch > 2 ||
        h.total_length != part_bytes(int(h.edge)) || owners_[h.edge].primary != int(c.user))
      fail(errc::protocol, c.label(), " sends ", h.total_length, " bytes of part ", h.micro_batch, " of parameter ", h.edge,
           ", which was not asked of it");
    if (std::exchange(has_part_[h.edge * 3 + h.micro_batch], u8(1)))
      fail(errc::protocol, c.label(), " sends part ", h.micro_batch, " of parameter ", h.edge, " twice");
    return {state_part(int(h.edge), int(h.micro_batch)), h.total_length};
  }
  void on_message(connection& c, const frame_header& h, const_byte_span payload) override {
    links_.heard(c);
    if (ended_) return;
    member& m = peers_[c.user];
    if (h.kind == frame_kind::heartbeat) {
      if (std::exchange(m.progress, h.step) != h.step) progressed_ = loop_.now();
      return;
    }
    progressed_ = loop_.now();
    if (h.kind == frame_kind::bulk) return collected(m);
    if (h.kind != frame_kind::control) fail(errc::protocol, c.label(), " sends the broker a message of kind ", int(h.kind));
    const auto in_turn = [&](bool yes) {
      if (!yes) fail(errc::protocol, c.label(), " sends a control message of kind ", h.edge, " out of turn");
    };
    switch (control_kind(h.edge)) {
      case control_kind::joining: return in_turn(phase_ == phase::gathering && !m.has_joined), joins(m, decode_control<joining>(payload));
      case control_kind::connected:
        in_turn(phase_ == phase::connecting && !m.connected);
        m.connected = true;
        return all_connected();
      case control_kind::measured:
        in_turn(phase_ == phase::measuring && measuring_ == u32(c.user));
        m.results = checked(c, decode_control<measured>(payload));
        m.has_measured = true;
        return measure_from(u32(c.user) + 1);
      case control_kind::ready:
        in_turn(phase_ == phase::preparing && !m.ready);
        m.ready = true;
        return all_ready();
      case control_kind::report: {
        in_turn((phase_ == phase::running || phase_ == phase::collecting) && works_[c.user]);
        return reported(m, int(c.user), decode_control<report>(payload));
      }
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
    std::string who;
    for (u32 i = 0; i < peers_.size(); ++i)
      if (!(peers_[i].*w.done) && (phase_ != phase::measuring || i == measuring_)) who += (who.empty() ? "" : ", ") + title(i);
    break_off(error(errc::timeout, who + w.what + " within " + detail::in_seconds(t) + ": " + w.remedy + ", or raise connect_timeout"));
  }
  std::string title(u32 rank) const {
    return peers_[rank].name.empty() ? "peer " + std::to_string(rank) : "'" + peers_[rank].name + "'";
  }
  // From the first grant on. Peers watch each other's messages more closely and name what is missing: they come first.
  void watch() {
    const nanoseconds most = settings_.step_timeout + settings_.silence_timeout;
    deadline_ = loop_.after((std::max)(nanoseconds(1), most / 8), [this] { watch(); });
    if (loop_.now() - progressed_ <= most) return;
    const u64 least = slowest();
    std::string who;
    for (u32 i = 0; i < peers_.size(); ++i)
      if (works_[i] && (phase_ == phase::collecting ? peers_[i].parts > 0 : peers_[i].done == least)) who += (who.empty() ? "" : ", ") + title(i);
    break_off(error(errc::timeout, who + " did not send " + (phase_ == phase::collecting ? "the state of" : "a report of") + " step " +
                                       std::to_string(least) + " within " + detail::in_seconds(loop_.now() - progressed_) +
                                       ": see what holds it up, or raise step_timeout"));
  }

  // --- gathering
  void joins(member& m, joining j) {
    const dtype real = model_.device(j.device).real;
    for (const auto& other : peers_)
      if (other.has_joined && model_.device(other.joined.device).real != real)
        return break_off(error(errc::config, "'" + m.name + "' computes in " + fusionllm::name_of(real) + ", '" + other.name + "' in " +
                                                 fusionllm::name_of(model_.device(other.joined.device).real) + ": use devices of one precision"));
    m.joined = std::move(j);
    m.has_joined = true;
    for (const auto& p : peers_)
      if (!p.has_joined) return;
    real_ = real;
    phase_ = phase::connecting;
    expect_within(settings_.gather_timeout);
    roster r;
    for (u32 i = 0; i < peers_.size(); ++i) r.members.push_back({i, peers_[i].name, peers_[i].c->remote().announce});
    if (settings_.emulate && settings_.machines)
      for (int a = 0; a < settings_.peers; ++a)
        for (int b = 0; b < settings_.peers; ++b)
          if (a != b) {
            const path& x = settings_.machines->between(a, b);
            r.paces.push_back({u32(a), u32(b), x.bytes_per_second * 8, x.latency});
          }
    for (auto& p : peers_) send_control(*p.c, control_kind::roster, r);
  }
  void all_connected() {
    for (const auto& p : peers_)
      if (!p.connected) return;
    if (settings_.machines) return make_plan(cost_model(first_machines(), model_.encoded_bytes));
    phase_ = phase::measuring;
    host_.on_text("measuring devices and links");
    measure_from(0);
  }
  cluster first_machines() const {
    const cluster& all = *settings_.machines;
    cluster c;
    c.sites = all.sites;
    c.peers.assign(all.peers.begin(), all.peers.begin() + settings_.peers);
    for (int a = 0; a < settings_.peers; ++a)
      for (int b = 0; b < settings_.peers; ++b) c.paths.push_back(all.between(a, b));
    return c;
  }

  // --- measuring
  void measure_from(u32 rank) {
    measuring_ = rank;
    expect_within(settings_.gather_timeout);
    if (rank < peers_.size()) return send_control(*peers_[rank].c, control_kind::measure, nothing{});
    machine each;
    each.flops_per_second = 1'000'000'000;
    each.memory_bytes = u64(1) << 40;
    cluster c = uniform_cluster(settings_.peers, each, path{});
    for (u32 i = 0; i < peers_.size(); ++i) {
      c.peers[i].name = peers_[i].name;
      if (peers_[i].joined.memory_bytes) c.peers[i].memory_bytes = peers_[i].joined.memory_bytes;
    }
    cost_model costs(std::move(c), model_.encoded_bytes);
    for (u32 i = 0; i < peers_.size(); ++i) fit(costs, int(i));
    make_plan(costs);
  }
  /// Errors: protocol, for numbers that nobody measures.
  static measured checked(const connection& c, measured m) {
    constexpr u64 most = u64(1) << 60;
    const auto sane = [&](u64 a, u64 b, i64 took) {
      if (a > most || b > most || took < 0 || took > 1000 * second)
        fail(errc::protocol, c.label(), " says that it measured ", took, " ns for ", a, " and ", b);
    };
    for (auto& s : m.samples) sane(s.flops, s.bytes, s.took);
    for (auto& p : m.probes) sane(p.bytes, 0, p.took);
    return m;
  }
  void fit(cost_model& costs, int rank) {
    const measured& m = peers_[std::size_t(rank)].results;
    std::vector<operator_sample> samples;
    for (const auto& s : m.samples)
      samples.push_back({s.kind, s.backward ? direction::backward : direction::forward, s.flops, s.bytes, s.took});
    costs.set_rates(rank, fit_rates(samples, costs.rates(rank)));
    for (int to = 0; to < settings_.peers; ++to) {
      std::vector<link_probe> probes;
      for (const auto& p : m.probes)
        if (int(p.to) == to) probes.push_back({p.bytes, p.took});
      if (!probes.empty()) costs.set_path(rank, to, fit_path(probes));
    }
  }

  void make_plan(const cost_model& costs) {
    phase_ = phase::preparing;
    expect_within(resumes_ ? (std::max)(settings_.gather_timeout, settings_.step_timeout) : settings_.gather_timeout);
    try {
      plan_ = plan_run(model_, settings_, costs);
      const planning_problem problem = problem_of(model_, settings_, costs);
      owners_ = owners_of(model_.graph, plan_);
      host_.on_plan(plan_, costs);
      if (resumes_) history_ = host_.saved_history();
      const loss_history::state losses = history_.numbers();
      for (u32 i = 0; i < peers_.size(); ++i) {
        assignment a = to_message(plan_);
        a.resumes = resumes_;
        if (resumes_) a.history.assign(losses.begin(), losses.end());
        if (settings_.emulate) {
          a.holds = holds_of(problem, plan_, int(i));
          a.update_hold = update_hold_of(problem, plan_, int(i));
        }
        send_control(*peers_[i].c, control_kind::assignment, a);
        if (resumes_) send_state(int(i));
        works_.push_back(plan_.stage_of_peer(int(i)) >= 0);
      }
    } catch (const error& e) {
      break_off(e);
    }
  }
  void send_state(int rank) {
    for (int p = 0; p < int(owners_.size()); ++p) {
      const auto& holders = owners_[std::size_t(p)].holders;
      if (std::find(holders.begin(), holders.end(), rank) == holders.end()) continue;
      for (int part = 0; part < (owners_[std::size_t(p)].primary == rank ? 3 : 1); ++part) {
        outgoing m;
        m.header.kind = frame_kind::bulk;
        m.header.edge = u32(p);
        m.header.micro_batch = u32(part);
        const auto bytes = host_.saved(p, part);
        if (bytes.size() != part_bytes(p))
          fail(errc::checkpoint, "the saved state has ", bytes.size(), " bytes of ", model_.graph.params[std::size_t(p)].path.view(), ", expected ",
               part_bytes(p), ": it is of another model or precision");
        m.owned.assign(bytes.begin(), bytes.end());
        m.level = priority::bulk;
        peers_[std::size_t(rank)].c->send(std::move(m));
      }
    }
    // Of the level below the state's, which it must not overtake.
    outgoing last;
    last.header.kind = frame_kind::control;
    last.header.edge = u32(control_kind::restored);
    last.owned = encode_control(step_number{first_step_});
    last.level = priority::last;
    peers_[std::size_t(rank)].c->send(std::move(last));
  }
  void all_ready() {
    for (const auto& p : peers_)
      if (!p.ready) return;
    loop_.cancel(deadline_);
    progressed_ = loop_.now();
    watch();
    phase_ = phase::running;
    for (auto& p : peers_) p.done = first_step_;
    granted_ = first_step_;
    boundary_ = next_boundary(first_step_);
    advance();
  }

  // --- running
  u64 slowest() const {
    u64 least = settings_.steps;
    for (u32 i = 0; i < peers_.size(); ++i)
      if (works_[i]) least = (std::min)(least, peers_[i].done);
    return least;
  }
  u64 next_boundary(u64 from) const {
    const u64 every = settings_.checkpoint_interval;
    return every ? (std::min)(settings_.steps, (from / every + 1) * every) : settings_.steps;
  }
  void advance() {
    const u64 done = slowest();
    if (stopping_) boundary_ = (std::min)(boundary_, granted_);
    if (done >= boundary_) return collect(done);
    const u64 until = (std::min)(boundary_, done + steps_ahead);
    if (until <= granted_) return;
    granted_ = until;
    for (auto& p : peers_)
      if (p.c) send_control(*p.c, control_kind::grant, step_number{granted_});
  }
  void reported(member& m, int rank, report r) {
    if (r.step != m.done || r.step >= granted_)
      fail(errc::protocol, "'", m.name, "' reports step ", r.step, ", expected ", m.done, " of ", granted_, " granted ones");
    for (const auto& t : r.traffic)
      if (t.to >= peers_.size()) fail(errc::protocol, "'", m.name, "' reports traffic to peer ", t.to, " of ", peers_.size());
    if (pending_.empty() || pending_.back().step < r.step + 1) {
      pending_.emplace_back();
      pending_.back().step = r.step + 1;
      pending_count_.push_back(0);
    }
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      cluster_step& s = pending_[i];
      if (s.step != r.step + 1) continue;
      s.loss = r.loss;
      s.gradient_norm = r.gradient_norm;
      s.learning_rate = r.learning_rate;
      s.skipped = r.skipped != 0;
      if (s.skipped && s.reason.empty()) s.reason = reason_of(verdict_of(r), model_.graph, plan_, names());
      s.elapsed = std::max<nanoseconds>(s.elapsed, r.elapsed);
      for (const auto& t : r.traffic) s.links.push_back(difference(rank, t, m.last));
      ++pending_count_[i];
    }
    m.done = r.step + 1;
    m.last = std::move(r);
    const auto members = std::count(works_.begin(), works_.end(), u8(1));
    while (!pending_.empty() && pending_count_.front() == members) {
      cluster_step s = std::move(pending_.front());
      pending_.erase(pending_.begin());
      pending_count_.erase(pending_count_.begin());
      s.predicted = plan_.predicted_step;
      try {
        host_.on_step(s);
      } catch (const error& e) {
        return break_off(e);  // not the fault of the peer whose report was the last
      }
      history_.add(s.loss, s.skipped);
      if (const u64 most = settings_.skipping.most_in_row; most && history_.skipped_in_row() >= most) return break_off(diverged(s.step, history_, s.reason));
    }
    advance();
  }
  static step_verdict verdict_of(const report& r) {
    step_verdict v;
    v.loss = r.loss;
    v.skipped = r.skipped != 0;
    v.reason = r.skipped <= u32(skip_reason::loss_spike) ? skip_reason(r.skipped) : skip_reason::not_finite;
    v.mean_loss = r.mean_loss;
    v.first = {r.kind <= u32(fault_kind::loss) ? fault_kind(r.kind) : fault_kind::activation, r.micro_batch, r.node, r.parameter, r.peer};
    return v;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (u32 i = 0; i < peers_.size(); ++i) all.push_back(title(i));
    return all;
  }
  static cluster_step::link difference(int from, const traffic_message& now, const report& before) {
    cluster_step::link l{from, int(now.to), now.messages, now.raw, now.encoded, now.wire, now.busy};
    for (const auto& t : before.traffic)
      if (t.to == now.to) {
        l.messages -= t.messages;
        l.raw -= t.raw;
        l.encoded -= t.encoded;
        l.wire -= t.wire;
        l.busy -= t.busy;
      }
    return l;
  }

  // --- state
  u64 part_bytes(int p) const { return model_.graph.params[std::size_t(p)].count() * size_of(real_); }
  std::byte* state_part(int p, int part) {
    if (state_at_.empty()) {
      u64 total = 0;
      for (int i = 0; i < int(model_.graph.params.size()); ++i) {
        state_at_.push_back(total);
        total += 3 * aligned(part_bytes(i));
      }
      state_ = memory_block(total);
    }
    return state_.data() + state_at_[std::size_t(p)] + u64(part) * aligned(part_bytes(p));
  }
  void collect(u64 step) {
    phase_ = phase::collecting;
    collect_step_ = step;
    missing_ = 3 * model_.graph.params.size();
    has_part_.assign(missing_, u8(0));
    for (u32 i = 0; i < peers_.size(); ++i) {
      peers_[i].parts = 0;
      for (const auto& o : owners_) peers_[i].parts += o.primary == int(i) ? 3 : 0;
      if (works_[i]) send_control(*peers_[i].c, control_kind::collect, step_number{step});
    }
    if (missing_ == 0) state_complete();
  }
  void collected(member& m) {
    --m.parts;
    if (--missing_ == 0) state_complete();
  }
  void state_complete() {
    try {
      host_.on_history(history_);
      host_.on_state(collect_step_, [this](int p, int part) -> std::span<const std::byte> { return {state_part(p, part), part_bytes(p)}; });
    } catch (const error& e) {
      return break_off(e);  // not the fault of the peer whose message was the last
    }
    if (collect_step_ >= settings_.steps || stopping_) {
      for (auto& p : peers_) send_control(*p.c, control_kind::finish, nothing{});
      const bool early = collect_step_ < settings_.steps;
      return end(error(early ? errc::interrupted : errc::ok, early ? "stopped after step " + std::to_string(collect_step_) : "the run has finished"));
    }
    phase_ = phase::running;
    boundary_ = next_boundary(collect_step_);
    advance();
  }

  void end(const error& why) {
    if (ended_) return;
    ended_ = true;
    links_.stop();
    loop_.cancel(deadline_);
    net_.stop_listening();
    const bool fine = why.code() == errc::ok || why.code() == errc::interrupted;
    for (auto& p : peers_)
      if (p.c && p.c->is_open()) p.c->close(fine ? errc::ok : why.code(), why.what());
    host_.on_end(why);
  }

  static constexpr u64 steps_ahead = 4;

  const model_binding& model_;
  cluster_settings settings_;
  transport& net_;
  reactor& loop_;
  broker_host& host_;
  watched_links links_;
  std::vector<member> peers_;
  phase phase_ = phase::gathering;
  timer_id deadline_;
  dtype real_ = dtype::f32;
  plan plan_;
  std::vector<parameter_owners> owners_;
  std::vector<u8> works_;  ///< by rank: it has a stage
  u32 measuring_ = 0;
  nanoseconds progressed_ = 0;
  bool resumes_ = false;
  u64 first_step_ = 0, granted_ = 0, boundary_ = 0, collect_step_ = 0;
  bool stopping_ = false, ended_ = false;
  std::vector<cluster_step> pending_;
  std::vector<std::ptrdiff_t> pending_count_;
  loss_history history_;
  memory_block state_;
  std::vector<u64> state_at_;
  std::vector<u8> has_part_;
  u64 missing_ = 0;
};

}  // namespace fusionllm::inline v0
