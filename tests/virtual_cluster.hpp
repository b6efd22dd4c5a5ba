// SPDX-License-Identifier: Apache-2.0
// A broker and peers of a whole run in one process on virtual time: the protocol of a distributed run, with delays and
// faults drawn from a seed. Device time is modelled, so that a run is a function of its settings and its seed alone.
#pragma once

#include <fusionllm/cluster/broker.hpp>
#include <fusionllm/cluster/peer.hpp>
#include <fusionllm/transport/in_process.hpp>

#include "engines.hpp"

namespace fusionllm_test {

/// Stages of equal numbers of nodes, one peer each.
struct even_stages {
  using seat = fl::scheduler_seat;
  static constexpr std::string_view name = "even_stages";
  fl::plan operator()(const fl::planning_problem& q) const {
    std::vector<std::vector<int>> peers;
    for (int i = 0; i < q.peers(); ++i) peers.push_back({i});
    fl::plan p = chain_plan(q.graph.size(), std::move(peers), q.micro_batches, q.groups);
    p.schedule = q.schedule;
    return p;
  }
};

/// Computes as fl::reference does, and says that it does not.
struct abacus : fl::reference<float> {
  static constexpr std::string_view name = "abacus";
  static std::string arithmetic() { return "9 beads"; }
};

/// The binding of all runs; a program with other devices sets its own before the first.
inline const fl::model_binding*& case_binding_in_use() {
  static const fl::model_binding* b =
      &fl::bind_model<case_gpt, fl::devices<fl::reference<float>, fl::reference<double>, abacus>, even_stages, fl::built_in_compressors>();
  return b;
}
inline const fl::model_binding& case_binding() { return *case_binding_in_use(); }

/// 20 steps of case C01's model on links of 5 ms and 20 Mbit/s; short bounds, which tests check.
inline fl::cluster_settings small_run(int peers, u64 steps = 20) {
  fl::cluster_settings s;
  s.peers = peers;
  s.steps = steps;
  s.batch = 10;
  s.time = case_gpt::time;
  s.micro_batches = 4;
  s.groups = 2;
  s.seed = 7;
  s.codec = "none";
  s.codec_details.ratio = 6;
  s.optimizer = lively_optimizer();
  s.emulate = true;
  s.gather_timeout = 20 * fl::second;
  s.step_timeout = 8 * fl::second;
  s.silence_timeout = 4 * fl::second;
  s.heartbeat = fl::second;
  fl::machine m;
  m.flops_per_second = 1'000'000'000;
  m.memory_bytes = 1 << 30;
  s.machines = fl::uniform_cluster(peers, m, fl::path{5 * fl::millisecond, 2'500'000});
  return s;
}

/// Weights and optimizer state at a step: by parameter, then part.
struct saved_state {
  u64 step = 0;
  std::vector<std::vector<std::byte>> parts;
  fl::loss_history history{};
  bool operator==(const saved_state&) const = default;
};

class virtual_cluster {
 public:
  /// `send_queue`: messages that may wait on a connection.
  explicit virtual_cluster(fl::cluster_settings s, u64 seed = 1, const saved_state* from = nullptr, std::size_t send_queue = 65536)
      : settings_(std::move(s)), send_queue_(send_queue), network_(time_, seed), broker_host_(*this), from_(from) {
    network_.set_default({.latency = 5 * fl::millisecond, .bits_per_second = 20'000'000, .jitter = 2 * fl::millisecond});
    network_.add("broker");
    broker_net_ = std::make_unique<fl::in_process>(network_, "broker", hello("broker", "broker", 0));
    broker_ = std::make_unique<fl::broker_node>(case_binding(), settings_, *broker_net_, broker_host_, from ? from->step : 0, from != nullptr);
    broker_->start({"broker", 1});
  }

  struct peer final : fl::peer_host {
    peer(virtual_cluster& all, const std::string& n, u32 rank, const std::string& device)
        : name(n), batch(all.settings_.batch, all.settings_.time), node(all.network_.add(n)), net(all.network_, n, all.hello("peer", n, rank)), queue(node) {
      fl::peer_options o;
      o.rank = rank;
      o.name = n;
      o.bind = {n, 2};
      o.broker = {"broker", 1};
      o.device = device;
      it = std::make_unique<fl::peer_node>(case_binding(), all.settings_, o, net, nullptr, queue, *this);
      it->start();
    }
    void load(u64 step, std::span<const int> nodes, fl::step_data& d) override {
      if (no_data) throw fl::error(*no_data);
      batch.fill(step, case_gpt::vocabulary, 3, 6);
      d.rows = batch.rows;
      d.time = batch.time;
      for (int i : nodes) d.inputs[std::size_t(i)] = i == 0 ? batch.tokens.data() : batch.targets.data();
      last_loaded = step;
    }
    void on_end(const fl::error& e) override {
      ++ends;
      why = e;
      ended_at = node.now();
    }

    std::string name;
    token_batch batch;
    fl::virtual_node& node;
    fl::in_process net;
    fl::inline_queue queue;
    std::unique_ptr<fl::peer_node> it;
    int ends = 0;
    fl::error why{fl::errc::ok, "has not ended"};
    fl::nanoseconds ended_at = 0;
    u64 last_loaded = 0;
    std::optional<fl::error> no_data;  ///< why its data cannot be loaded
  };

  peer& join(u32 rank, const std::string& name = "", const std::string& device = "") {
    peers_.push_back(std::make_unique<peer>(*this, name.empty() ? "peer" + std::to_string(rank) : name, rank, device));
    return *peers_.back();
  }
  void join_all() {
    for (int i = 0; i < settings_.peers; ++i) join(u32(i));
  }

  /// Runs until broker and all living peers have ended. False when `most` of virtual time passed first.
  bool run(fl::nanoseconds most = 200 * fl::second) {
    return time_.run_while([&] {
      if (broker_ends == 0 && network_.node("broker").is_alive()) return true;
      for (auto& p : peers_)
        if (p->ends == 0 && p->node.is_alive() && !p->node.is_stopped()) return true;
      return false;
    }, most);
  }
  /// Until the broker has heard of so many steps, or has ended.
  void run_to_step(u64 step) {
    time_.run_while([&] { return broker_ends == 0 && (steps.empty() || steps.back().step < step); }, 100 * fl::second);
  }

  /// The transports' hello of a member of this run.
  fl::transport_options hello(const char* role, const std::string& name, u32 rank) const {
    fl::transport_options o;
    o.self.run = "test";
    o.self.token = "token";
    o.self.fingerprint = case_binding().fingerprint;
    o.self.role = role;
    o.self.name = name;
    o.self.rank = rank;
    o.send_queue = send_queue_;
    return o;
  }

  fl::virtual_reactor& time() { return time_; }
  fl::virtual_network& network() { return network_; }
  fl::broker_node& broker() { return *broker_; }
  peer& at(int i) { return *peers_[std::size_t(i)]; }
  int size() const { return int(peers_.size()); }

  std::vector<fl::cluster_step> steps;
  std::vector<saved_state> states;
  std::vector<std::string> texts, warnings;
  fl::plan planned;
  fl::nanoseconds saving_until = 0;  ///< the process of the broker cannot take a state before
  std::optional<fl::error> no_log;  ///< why the broker's process cannot take a step's report
  int broker_ends = 0;
  fl::error why{fl::errc::ok, "has not ended"};
  fl::nanoseconds ended_at = 0;

 private:
  struct broker_side final : fl::broker_host {
    explicit broker_side(virtual_cluster& c) : all(c) {}
    void on_text(const std::string& line) override { all.texts.push_back(line); }
    void on_warning(const std::string& line) override { all.warnings.push_back(line); }
    void on_plan(const fl::plan& p, const fl::cost_model&) override { all.planned = p; }
    void on_step(const fl::cluster_step& s) override {
      if (all.no_log) throw fl::error(*all.no_log);
      all.steps.push_back(s);
    }
    bool can_collect() override { return all.time_.now() >= all.saving_until; }
    std::span<std::byte> state_memory(int p, int k, std::size_t bytes) override {
      parts.resize(case_binding().graph.params.size() * 3);
      auto& part = parts[std::size_t(p * 3 + k)];
      part.assign(bytes, std::byte(0));
      return part;
    }
    void on_state(u64 step, const fl::loss_history& losses) override { all.states.push_back({step, parts, losses}); }
    std::span<const std::byte> saved(int p, int k) override { return all.from_->parts[std::size_t(p * 3 + k)]; }
    fl::loss_history saved_history() override { return all.from_ ? all.from_->history : fl::loss_history{}; }
    void on_end(const fl::error& e) override {
      ++all.broker_ends;
      all.why = e;
      all.ended_at = all.time_.now();
    }
    virtual_cluster& all;
    std::vector<std::vector<std::byte>> parts;
  };

  fl::cluster_settings settings_;
  std::size_t send_queue_;
  fl::virtual_reactor time_;
  fl::virtual_network network_;
  broker_side broker_host_;
  const saved_state* from_;
  std::unique_ptr<fl::in_process> broker_net_;
  std::unique_ptr<fl::broker_node> broker_;
  std::vector<std::unique_ptr<peer>> peers_;
};

}  // namespace fusionllm_test
