// SPDX-License-Identifier: Apache-2.0
// `broker`: brings the peers of a run together, plans it, tells what happens, and keeps its checkpoints.
#pragma once

#include "../cluster/broker.hpp"
#include "../estimate/topology_json.hpp"
#include "../schedule/plan_json.hpp"
#include "../simulate/report.hpp"
#include "../trainer/held_out.hpp"
#include "../trainer/weights_model.hpp"
#include "background_save.hpp"
#include "peer.hpp"
#include "sinks.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Settings of the run with the machines and the plan that files give.
inline cluster_settings full_settings_of(const command_call& call) {
  const run_config& c = call.config;
  cluster_settings s = cluster_settings_of(c);
  if (c.stop_after > 0) s.steps = (std::min)(s.steps, u64(c.stop_after));
  if (!c.topology.empty()) s.machines = expand(load_topology(c.topology));
  if (!c.use.empty()) {
    std::vector<std::string> names;
    if (s.machines) names = peer_names(*s.machines);
    names.resize(std::size_t(s.peers));
    plan defaults;
    defaults.micro_batches = s.micro_batches;
    defaults.groups = s.groups;
    defaults.schedule = s.schedule;
    defaults.recompute = s.recompute;
    s.given_plan = load_plan(c.use, call.model.graph, names, defaults);
    if (s.given_plan->micro_batches != s.micro_batches || s.given_plan->groups != s.groups)
      fail(errc::plan, "the plan in '", c.use, "' has ", s.given_plan->micro_batches, " micro-batches in ", s.given_plan->groups,
           " groups, the run ", s.micro_batches, " in ", s.groups, ": give both the same");
  }
  return s;
}

/// Weights and optimizer state in memory, by parameter: of the checkpoint to go on from, or where the run arrived. It is
/// there once: peers' messages are received into it, checkpoints written from it.
class run_state {
 public:
  std::vector<std::byte>& part(const graph_view& g, int parameter, int which) {
    parts.resize(g.params.size() * 3);
    return parts[std::size_t(parameter * 3 + which)];
  }
  void read(const graph_view& g, const checkpoint_reader& r, dtype real) {
    step = r.info().step;
    history = read_history(r);
    parts.resize(g.params.size() * 3);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const parameter_info& p = g.params[i / 3];
      parts[i].resize(std::size_t(p.count() * size_of(real)));
      r.read(std::string(p.path.view()) + suffix(i % 3), real, p.dims, parts[i]);
    }
  }
  static const char* suffix(std::size_t part) { return part == 0 ? "" : part == 1 ? ":m" : ":v"; }

  u64 step = 0;
  loss_history history;
  std::vector<std::vector<std::byte>> parts;
};

/// What the broker is told becomes events, checkpoints and an ending.
class broker_process final : public broker_host {
 public:
  broker_process(const command_call& call, const cluster_settings& s, command_sinks& sinks)
      : call_(call), settings_(s), sinks_(sinks), events_(sinks.all), ended_(errc::ok, "") {
    if (!call.config.run.empty()) folder_.emplace(call.config.run);
  }

  /// Takes up the newest checkpoint and gives its step. Errors: errc::checkpoint.
  u64 resume() {
    const auto found = folder_->checkpoints().find_newest(call_.model.fingerprint);
    for (const auto& why : found.damaged) warn(why);
    if (!found.newest) fail(errc::checkpoint, "run folder '", call_.config.run, "' holds no whole checkpoint to resume from: leave out --resume");
    state_.read(call_.model.graph, *found.newest, weights_beside(call_.model.device(call_.config.device).real));
    on_text("resumed after step " + std::to_string(state_.step));
    return state_.step;
  }

  /// How the run ended; a run whose last state could not be saved did not end well.
  const error& ending() const { return ended_.code() == errc::ok && unsaved_ ? *unsaved_ : ended_; }
  /// At rest once no broker is there and finish_save() has returned.
  run_state& state() { return state_; }

  void on_text(const std::string& line) override { events_.on_message({severity::info, line}); }
  void warn(const std::string& line) { events_.on_message({severity::warning, line}); }

  void on_plan(const plan& p, const cost_model& costs) override {
    sinks_.begin();
    plan_ = p;
    for (const machine& m : costs.machines().peers) names_.push_back(m.name);
    const planning_problem problem = problem_of(call_.model, settings_, costs);
    on_text(describe(problem, p, replay(problem, p)));
  }

  void on_step(const cluster_step& s) override {
    std::vector<link_usage> links;
    for (const auto& l : s.links) {
      std::string_view codec = "none";
      for (const link_codec& c : plan_.codecs)
        if (c.from == l.from && c.to == l.to) codec = c.codec;
      if (l.messages > 0) links.push_back({name(l.from), name(l.to), codec, l.raw, l.wire, double(l.busy) * 1e-9});
    }
    if (s.skipped) warn("step " + std::to_string(s.step) + " was skipped: " + s.reason);
    step_event e;
    e.step = s.step, e.steps = u64(call_.config.steps), e.loss = s.loss, e.learning_rate = s.learning_rate;
    e.gradient_norm = s.gradient_norm, e.tokens = u64(tokens_in(call_.model.graph, {call_.config.batch, call_.config.time}));
    e.seconds = double(s.elapsed) * 1e-9, e.predicted_seconds = double(s.predicted) * 1e-9, e.links = links;
    e.skipped = s.skipped, e.reason = s.reason;
    events_.on_step(e);
  }

  void on_warning(const std::string& line) override { warn(line); }
  loss_history saved_history() override { return state_.history; }
  std::span<const std::byte> saved(int parameter, int part) override { return state_.part(call_.model.graph, parameter, part); }
  /// Not while the state is being written to a file.
  bool can_collect() override {
    poll();
    return !saving_.under_way();
  }
  std::span<std::byte> state_memory(int parameter, int part, std::size_t bytes) override {
    auto& memory = state_.part(call_.model.graph, parameter, part);
    memory.resize(bytes);
    return memory;
  }
  void on_state(u64 step, const loss_history& losses) override {
    state_.step = step;
    state_.history = losses;
    if (folder_) saving_.start(step, folder_->checkpoints().file_of(step), [this](const std::string& path) { return save(path); });
  }
  /// Tells of a save that has ended in the meantime.
  void poll() { tell(saving_.poll()); }
  /// Waits for it.
  void finish_save() { tell(saving_.wait()); }
  void on_end(const error& why) override { ended_ = why; }

 private:
  std::string_view name(int peer) const { return std::size_t(peer) < names_.size() ? std::string_view(names_[std::size_t(peer)]) : "?"; }

  void tell(const std::optional<background_save::result>& r) {
    if (!r) return;
    unsaved_ = r->failure;
    if (r->failure && r->step < settings_.steps) return warn(std::string(r->failure->what()) + "; training goes on");
    if (r->failure) return;
    folder_->checkpoints().keep_newest(call_.config.keep, r->step);
    events_.on_checkpoint({r->step, r->path, r->bytes, r->seconds});
  }

  // On the saving thread: the state rests until the save has ended.
  u64 save(const std::string& path) const {
    const graph_view& g = call_.model.graph;
    checkpoint_writer w(path, {call_.model.fingerprint, state_.step});
    for (std::size_t i = 0; i < state_.parts.size(); ++i) {
      const parameter_info& p = g.params[i / 3];
      const dtype real = state_.parts[i].size() == p.count() * 8 ? dtype::f64 : dtype::f32;
      w.add(std::string(p.path.view()) + run_state::suffix(i % 3), real, p.dims, state_.parts[i]);
    }
    write_history(w, state_.history);
    w.finish();
    return w.bytes_written();
  }

  const command_call& call_;
  const cluster_settings& settings_;
  command_sinks& sinks_;
  event_sinks& events_;
  std::optional<run_folder> folder_;
  run_state state_;
  plan plan_;
  std::vector<std::string> names_;
  std::optional<error> unsaved_;
  error ended_;
  background_save saving_;  // last, so that it ends first
};

/// Held-out loss of a state, computed in this process, which holds its weights once: the state's memory is released.
inline void evaluate_state(const command_call& call, const data_source& data, run_state& state, event_sinks& events) {
  const run_config& c = call.config;
  if (c.validation_batches == 0 || data.validation_batches() == 0 || state.parts.empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < state.parts.size(); ++i)
    if (i % 3 != 0) state.parts[i] = {};
  const graph_view& g = call.model.graph;
  const forward_output loss = whole_output(c, g.loss);
  weights_model m(call.model, c.device, int(c.threads), {c.batch, c.time}, {&loss, 1}, [&](int p, dtype, std::span<std::byte> to) {
    const auto from = std::exchange(state.parts[3 * std::size_t(p)], {});
    if (to.size() != from.size())
      fail(errc::internal, "'", g.params[std::size_t(p)].path.view(), "' has ", from.size(), " bytes, this device's type takes ", to.size());
    std::memcpy(to.data(), from.data(), from.size());
  });
  data_buffers buffers(g, m.real_type(), {c.batch, c.time});
  const held_out_loss r = evaluate_held_out(m, data, buffers, c.validation_batches);
  events.on_validation({state.step, r.loss, u64(tokens_in(g, {r.rows, c.time})), seconds_since(begin)});
}

/// A broker from its first word to its last. `watch(broker, listening)` is called every 100 ms at least.
template <class Watch>
void run_broker(const command_call& call, broker_process& process, const cluster_settings& s, u64 data_digest, u64 first_step, Watch&& watch) {
  asio_reactor loop;
  asio_tcp net(loop, transport_options_of(call, "broker", data_digest));
  broker_node broker(call.model, s, net, process, first_step, call.config.resume);
  const address at = broker.start(parse_address(call.options.listen.empty() ? call.config.broker : call.options.listen));
  const stop_signal stop;
  bool asked = false;
  while (!broker.ended()) {
    watch(broker, at);
    process.poll();
    loop.run_one(loop.now() + 100 * millisecond);
    if (!asked && stop.requested()) {
      asked = true;
      process.on_text("stopping after the steps under way; once more ends at once");
      broker.request_stop();
    }
  }
  drain(loop, net, 5 * second);
  process.finish_save();
}

}  // namespace detail

inline int broker_command(const command_call& call) {
  const cluster_settings s = detail::full_settings_of(call);
  const auto data = open_data_if_named(call);
  command_sinks sinks(call, data ? data->digest() : 0);
  detail::broker_process process(call, s, sinks);
  const u64 first = call.config.resume ? process.resume() : 0;
  if (first >= s.steps) {
    process.on_text("nothing left to do: step " + std::to_string(first) + " of " + std::to_string(s.steps) + " is done");
    sinks.finish(call);
    return 0;
  }
  bool told = false;
  detail::run_broker(call, process, s, data ? data->digest() : 0, first, [&](broker_node&, const address& at) {
    if (!std::exchange(told, true)) process.on_text("the broker listens on " + to_string(at) + " for " + std::to_string(s.peers) + " peers");
  });
  if (process.ending().code() == errc::ok && data) detail::evaluate_state(call, *data, process.state(), sinks.all);
  sinks.finish(call);
  if (process.ending().code() != errc::ok) throw error(process.ending());
  return 0;
}

}  // namespace fusionllm::inline v0
