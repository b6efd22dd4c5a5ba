// SPDX-License-Identifier: Apache-2.0
// Several engines in one process on virtual time, which hand messages to each other after delays drawn from a seed: the
// runtime of a distributed run without sockets, broker or handshake. In a steady step the harness allocates nothing.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <fusionllm/compress/registry.hpp>
#include <fusionllm/device/reference.hpp>
#include <fusionllm/ops/ops.hpp>
#include <fusionllm/runtime/engine.hpp>
#include <fusionllm/transport/virtual_reactor.hpp>

#include "case_gpt.hpp"

namespace fusionllm_test {

namespace fl = fusionllm;
using fl::i64;
using fl::u32;
using fl::u64;

/// Whole-batch memory for the inputs "tokens" and "targets" (nodes 0 and 1).
struct token_batch {
  static constexpr int ignored = -100;
  i64 rows = 0, time = 0;
  std::vector<std::int32_t> tokens, targets;

  token_batch(i64 r, i64 t) : rows(r), time(t), tokens(std::size_t(r * t)), targets(std::size_t(r * t)) {}
  /// The tokens of a step; every fifth target is masked, and all of the rows from `masked_begin` to `masked_end`.
  void fill(u64 step, int vocabulary, i64 masked_begin = 0, i64 masked_end = 0) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = int(fl::random_word({1, step, 0, 0}, i) % u32(vocabulary));
      targets[i] = (tokens[i] * 7 + 3) % vocabulary;
      const i64 row = i64(i) / time;
      if (i % 5 == 0 || (row >= masked_begin && row < masked_end)) targets[i] = ignored;
    }
  }
  fl::step_data data(u64 step, const fl::graph_view& g) const {
    fl::step_data d;
    d.step = step;
    d.rows = rows;
    d.time = time;
    d.inputs.assign(g.nodes.size(), nullptr);
    d.inputs[0] = tokens.data();
    d.inputs[1] = targets.data();
    return d;
  }
};

struct group_options {
  u64 seed = 7;          ///< of weights and dropout
  u64 delays = 1;        ///< of messages
  bool same_delays = false;  ///< in every step
  int threads = 1;
  fl::sizes bounds{3, case_gpt::time};
  fl::optimizer_settings optimizer{};
  std::string codec{fl::no_compression::label};
  double ratio = 4;
  fl::skip_settings skipping{};
  fl::loss_history history{};
  bool emulate = false;
};

/// Learning fast enough that every bit of 20 steps matters, with clipping, a warm-up and a decaying rate.
inline fl::optimizer_settings lively_optimizer() {
  fl::optimizer_settings o;
  o.learning_rate = 1e-2;
  o.clip_norm = 0.5;
  o.warmup_steps = 5;
  o.total_steps = 40;
  return o;
}

/// Where each parameter's bits are, by name.
using named_bits = std::map<std::string, std::vector<std::byte>>;

template <class Model, class Device, class Loop = fl::virtual_reactor, class Queue = fl::inline_queue>
class engine_group {
  struct peer;

 public:
  engine_group(const fl::plan& p, const group_options& o) : graph_(fl::graph_of<Model>()), options_(o) {
    int count = 0;
    for (const auto& replicas : p.peers)
      for (int r : replicas) count = std::max(count, r + 1);
    fl::check(p, graph_, count);
    for (int i = 0; i < count; ++i) peers_.push_back(std::make_unique<peer>(*this, p, i));
  }

  fl::engine& engine(int i) { return *peers_[std::size_t(i)]->engine; }
  int size() const { return int(peers_.size()); }
  const fl::graph_view& graph() const { return graph_; }
  Loop& loop() { return loop_; }
  const fl::step_report& report(int i = 0) const { return peers_[std::size_t(i)]->last; }
  /// Called with every message before it arrives; may change it, or return false to swallow it.
  std::function<bool(int to, fl::frame_header&, std::vector<std::byte>&)> meddle;

  /// One step of all peers. Throws what a peer reported, or who waits for whom when nothing moves any more.
  const fl::step_report& step(const fl::step_data& d) {
    if (options_.same_delays) counter_ = 0;
    for (auto& p : peers_) p->done = false;
    for (auto& p : peers_) p->engine->start(d);
    run([&] { return std::any_of(peers_.begin(), peers_.end(), [](const auto& p) { return !p->done; }); });
    if (failure_) throw fl::error(*failure_);
    for (auto& p : peers_)
      if (!p->done) throw std::runtime_error("peer " + std::to_string(p->self) + " waits for " + p->engine->waiting_for());
    return report();
  }
  double train(int steps, i64 rows = 10, i64 masked_begin = 3, i64 masked_end = 6) {
    token_batch b(rows, options_.bounds.time);
    double loss = 0;
    for (int s = 0; s < steps; ++s) {
      const u64 step = engine(0).next_step();
      b.fill(step, Model::vocabulary, masked_begin, masked_end);
      loss = this->step(b.data(step, graph_)).verdict.loss;
      losses.push_back(loss);
    }
    return loss;
  }

  /// The same steps, but every peer begins its next one when it is through, without waiting for the others.
  void race(int steps, i64 rows = 10, i64 masked_begin = 3, i64 masked_end = 6) {
    std::vector<token_batch> batches;
    for (int s = 0; s < steps; ++s) {
      batches.emplace_back(rows, options_.bounds.time);
      batches.back().fill(u64(s), Model::vocabulary, masked_begin, masked_end);
    }
    ahead_.clear();
    for (int s = 0; s < steps; ++s) ahead_.push_back(batches[std::size_t(s)].data(u64(s), graph_));
    for (auto& p : peers_) p->engine->start(ahead_[p->engine->next_step()]);
    run([&] { return std::any_of(peers_.begin(), peers_.end(), [&](const auto& p) { return p->engine->next_step() < u64(steps); }); });
    ahead_.clear();
    if (failure_) throw fl::error(*failure_);
    for (auto& p : peers_)
      if (p->engine->next_step() != u64(steps)) throw std::runtime_error("peer " + std::to_string(p->self) + " waits for " + p->engine->waiting_for());
  }

  /// What every holder of a parameter has; throws if two differ.
  named_bits weights() {
    named_bits r;
    each([&](peer&, const fl::local_parameter& x, const std::string& name, std::size_t bytes) {
      std::vector<std::byte> v(x.host_weight, x.host_weight + bytes);
      const auto [at, fresh] = r.try_emplace(name, v);
      if (!fresh && at->second != v) throw std::runtime_error("copies of " + name + " differ");
    });
    return r;
  }
  /// The optimizer's state by parameter; throws unless exactly one peer has it.
  named_bits optimizer_state() {
    named_bits r;
    each([&](peer&, const fl::local_parameter& x, const std::string& name, std::size_t bytes) {
      if (!x.primary) {
        if (x.m || x.v) throw std::runtime_error("a copy of " + name + " has optimizer state");
        return;
      }
      std::vector<std::byte> v(x.host_m, x.host_m + bytes);
      v.insert(v.end(), x.host_v, x.host_v + bytes);
      if (!r.try_emplace(name, std::move(v)).second) throw std::runtime_error(name + " has two optimizer states");
    });
    return r;
  }
  int copies(const std::string& name) {
    int n = 0;
    each([&](peer&, const fl::local_parameter&, const std::string& x, std::size_t) { n += x == name; });
    return n;
  }
  std::vector<double> losses;

 private:
  struct peer final : fl::engine_host {
    peer(engine_group& g, const fl::plan& p, int i) : group(g), self(i), context(g.options_.threads), queue(g.loop_) {
      fl::engine_options o;
      o.self = i;
      o.seed = g.options_.seed;
      o.bounds = g.options_.bounds;
      o.optimizer = g.options_.optimizer;
      o.skipping = g.options_.skipping;
      o.history = g.options_.history;
      o.make_codec = [&g](const fl::edge&) {
        fl::codec_options c;
        c.ratio = g.options_.ratio;
        return fl::make_codec(g.options_.codec, c);
      };
      if (g.options_.emulate) {
        o.holds.assign(fl::compile(g.graph_, p).tasks.size(), 20 * fl::microsecond * (1 + i));
        o.update_hold = 30 * fl::microsecond;
      }
      const fl::device_binding d{fl::device_table<Model, Device>(), &fl::vector_functions_of<Device>, &context,
                                 fl::dtype_of<typename Device::real>};
      engine = std::make_unique<fl::engine>(g.graph_, p, d, std::move(o), g.loop_, queue, *this);
    }
    void send(int to, const fl::frame_header& h, std::span<const std::byte> payload, u64 tag) override {
      group.carry(self, to, h, payload, tag);
    }
    void on_step(const fl::step_report& r) override {
      last = r;
      done = true;
      if (r.step + 1 < group.ahead_.size())
        group.loop_.post([this] { engine->start(group.ahead_[engine->next_step()]); });
    }
    void on_failure(const fl::error& e) override { group.failure_ = e; }

    engine_group& group;
    int self;
    typename Device::context context;
    Queue queue;
    std::unique_ptr<fl::engine> engine;
    fl::step_report last;
    bool done = false;
  };
  struct parcel {
    int from = 0, to = 0;
    fl::frame_header header;
    std::span<const std::byte> payload;
    u64 tag = 0;
  };

  void carry(int from, int to, const fl::frame_header& h, std::span<const std::byte> payload, u64 tag) {
    std::size_t i;
    if (free_.empty()) {
      i = parcels_.size();
      parcels_.emplace_back();
    } else {
      i = free_.back();
      free_.pop_back();
    }
    parcels_[i] = {from, to, h, payload, tag};
    parcels_[i].header.total_length = payload.size();
    const u32 r = fl::random_word({options_.delays, 0, 0, 0}, counter_++);
    loop_.after(fl::nanoseconds(1 + r % 50'000), [this, i] { arrive(i); });
  }
  void arrive(std::size_t i) {
    parcel p = parcels_[i];
    free_.push_back(i);
    fl::engine& to = engine(p.to);
    try {
      if (meddle) {
        std::vector<std::byte> bytes(p.payload.begin(), p.payload.end());
        engine(p.from).sent(p.tag);
        if (!meddle(p.to, p.header, bytes)) return;
        p.header.total_length = bytes.size();
        const auto memory = to.place(p.header);
        std::copy(bytes.begin(), bytes.end(), memory.begin());
        return to.deliver(p.header, memory);
      }
      const auto memory = to.place(p.header);
      if (!memory.empty()) std::memcpy(memory.data(), p.payload.data(), memory.size());
      engine(p.from).sent(p.tag);
      to.deliver(p.header, memory);
    } catch (const fl::error& e) {
      failure_ = e;
    }
  }

  // On virtual time until nothing is left to do, on real time while something is expected, for 60 s at most.
  template <class F>
  void run([[maybe_unused]] F&& expected) {
    if constexpr (std::is_same_v<Loop, fl::virtual_reactor>)
      while (!failure_ && loop_.run_one(fl::reactor::forever)) {
      }
    else loop_.run_while([&] { return !failure_ && expected(); }, 60 * fl::second);
  }

  template <class F>
  void each(F&& f) {
    for (auto& p : peers_) p->engine->parameters().to_host();
    for (auto& p : peers_)
      for (const auto& x : p->engine->parameters().parameters()) {
        const auto& info = graph_.params[std::size_t(x.parameter)];
        f(*p, x, std::string(info.path.view()), std::size_t(info.count()) * sizeof(typename Device::real));
      }
  }

  fl::graph_view graph_;
  group_options options_;
  Loop loop_;
  std::vector<std::unique_ptr<peer>> peers_;
  std::vector<fl::step_data> ahead_;  ///< by step, of a race
  std::vector<parcel> parcels_;
  std::vector<std::size_t> free_;
  std::optional<fl::error> failure_;
  u64 counter_ = 0;
};

/// Stages in order of the nodes, cut evenly.
inline fl::plan chain_plan(int nodes, std::vector<std::vector<int>> peers, int micro_batches = 4, int groups = 2) {
  fl::plan p;
  for (int i = 0; i < nodes; ++i) p.stage_of.push_back(i * int(peers.size()) / nodes);
  p.peers = std::move(peers);
  p.micro_batches = micro_batches;
  p.groups = groups;
  return p;
}

}  // namespace fusionllm_test
