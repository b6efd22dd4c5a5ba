// SPDX-License-Identifier: Apache-2.0
// A trained model over several peers: this process reads the checkpoint, sends each peer the weights of its stage, and
// asks. The peers are copies of this program that it starts and ends, or come from elsewhere (--listen). No peer needs
// the data or the run folder.
#pragma once

#include "../trainer/weights_model.hpp"
#include "local.hpp"

namespace fusionllm::inline v0 {

/// Whether a command that uses a trained model is to do so over peers.
inline bool over_peers(const command_call& call) {
  return call.config.peers > 1 || !call.options.listen.empty() || !call.config.topology.empty() || !call.config.use.empty();
}

class peers_model final : public model_outputs, private broker_host {
 public:
  /// For `outputs` of batches of at most `bound`. Returns when all peers are ready. Errors: what ends a run; checkpoint.
  peers_model(const command_call& call, checkpoint_reader from, const sizes& bound, std::vector<forward_output> outputs)
      : model_outputs(call.model.graph, call.model.device(call.config.device).real, bound), call_(prepared(call)), from_(std::move(from)),
        settings_(settings_of(call_, outputs)), net_(loop_, detail::transport_options_of(call_, "broker", 0)),
        broker_(call_.model, settings_, net_, *this) {
    check_time(graph(), bound.time);
    from_.expect_model(call.model.fingerprint);
    for (std::size_t o = 0; o < outputs.size(); ++o) passes_.push_back({outputs[o].node, std::make_unique<pass>(*this, int(o), outputs[o])});
    const bool elsewhere = !call.options.listen.empty();
    const address at = broker_.start(parse_address(elsewhere ? call.options.listen : "127.0.0.1:0"));
    if (elsewhere) say("waiting on " + to_string(at) + " for " + std::to_string(settings_.peers) + " peers");
    else children_.emplace(call_, settings_).start(at, {"--answer"});
    until([&] { return broker_.answering(); });
  }
  ~peers_model() override {
    if (!broker_.ended()) broker_.finish();
    leave();
  }

  forward_pass& pass_of(int node) override {
    for (auto& [n, p] : passes_)
      if (n == node) return *p;
    fail(errc::internal, "node ", node, " is none of the outputs that were wanted");
  }

 private:
  class pass final : public forward_pass {
   public:
    pass(peers_model& m, int output, const forward_output& what) : model_(m), output_(output), bounds_(what.bounds), needed_(slice(m.graph(), what.node)) {}
    const sizes& bounds() const override { return bounds_; }
    const flags& needed() const override { return needed_; }
    int window() const override { return model_.broker_.window(output_); }
    void ask(const sizes& s, std::span<const void* const> inputs, double loss_scale, i64 past, bool last_time) override {
      model_.until([] { return true; });  // what has come since the last answer
      model_.broker_.ask(output_, {s, past, loss_scale, last_time}, inputs);
    }
    tensor_ref answer() override {
      model_.until([&] { return model_.broker_.answered(output_); });
      return model_.broker_.take(output_, memory_);
    }

   private:
    peers_model& model_;
    int output_;
    sizes bounds_;
    flags needed_;
    std::vector<std::byte> memory_;
  };

  /// Peers that this process starts are its own: nobody else knows their token.
  static command_call prepared(const command_call& given) {
    command_call call = given;
    call.config.data.clear();
    call.options.answer = true;
    if (!call.options.listen.empty()) return call;
    if (call.config.token.empty()) call.config.token = detail::random_hex();
    if (call.config.run_id.empty()) call.config.run_id = detail::random_hex();
    return call;
  }
  static cluster_settings settings_of(const command_call& call, const std::vector<forward_output>& outputs) {
    cluster_settings s = detail::full_settings_of(call);
    s.outputs = outputs;
    s.codec = no_compression::label;
    s.recompute = recompute_policy::none;
    if (s.given_plan) s.given_plan->codecs.clear(), s.given_plan->recompute = recompute_policy::none;
    i64 rows = 1;
    for (const forward_output& o : outputs) rows = (std::max)(rows, o.bounds.batch);
    s.batch = rows * s.micro_batches;  // planned for questions of this size
    return s;
  }

  void say(const std::string& line) const { std::fprintf(call_.notes, "%s\n", line.c_str()); }

  /// Lets the peers work until `done()`. Errors: what ended the run.
  template <class Done>
  void until(Done&& done) {
    while (loop_.run_one(loop_.now())) {  // what is there already
    }
    while (!broker_.ended() && !done()) {
      if (children_) detail::watch_children(*children_, broker_, noticed_);
      loop_.run_one(loop_.now() + 100 * millisecond);
      if (stop_.requested() && !broker_.ended()) broker_.break_off(error(errc::interrupted, "stopped by its user"));
    }
    if (!broker_.ended()) return;
    leave();
    throw error(ended_);
  }
  void leave() {
    detail::drain(loop_, net_, 5 * second);
    if (!children_) return;
    for (const std::string& r : children_->finish(5 * second)) say("warning: " + r);
    children_.reset();
  }

  void on_text(const std::string& line) override {
    if (!children_) say(line);
  }
  void on_plan(const plan& p, const cost_model& costs) override {
    std::string who;
    for (int s = 0; s < p.stages(); ++s) {
      int operators = 0;
      for (std::size_t i = 0; i < p.stage_of.size(); ++i) operators += p.stage_of[i] == s && !graph().nodes[i].op->placeholder;
      for (int peer : p.peers[std::size_t(s)])
        who += (who.empty() ? "computed by " : ", ") + costs.machines().peers[std::size_t(peer)].name + " (" + std::to_string(operators) + " operators)";
    }
    say(who);
  }
  std::span<const std::byte> saved(int parameter, int) override {
    weights_.resize(std::size_t(graph().params[std::size_t(parameter)].count() * size_of(weights_beside(real_type()))));
    read_weights(from_, graph(), parameter, weights_beside(real_type()), weights_);
    return weights_;
  }
  void on_end(const error& why) override { ended_ = why; }

  command_call call_;
  checkpoint_reader from_;
  cluster_settings settings_;
  stop_signal stop_;
  asio_reactor loop_;
  asio_tcp net_;
  broker_node broker_;
  std::optional<detail::local_peers> children_;
  nanoseconds noticed_ = 0;
  std::vector<std::pair<int, std::unique_ptr<pass>>> passes_;
  std::vector<std::byte> weights_;  ///< of the parameter that is being sent
  error ended_{errc::ok, ""};
};

}  // namespace fusionllm::inline v0
