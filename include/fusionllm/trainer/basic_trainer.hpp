// SPDX-License-Identifier: Apache-2.0
// A trainer inside its caller's program and thread: no sockets, no clock, no files but the checkpoints it is asked for.
// It runs the same engine as a peer of a distributed run, as the only peer of a one-stage plan, so that both give the
// same bits.
#pragma once

#include <map>

#include "../cluster/binding.hpp"
#include "../runtime/engine.hpp"
#include "../transport/virtual_reactor.hpp"
#include "checkpoint.hpp"
#include "checkpoint_history.hpp"
#include "model_outputs.hpp"

namespace fusionllm::inline v0 {

struct trainer_options {
  std::string device{};          ///< one of those compiled in; empty: the first
  int threads = 1;
  i64 batch = 16;                ///< largest number of samples in a step
  i64 time = 128;                ///< largest number of tokens in a sample
  int micro_batches = 1;
  int groups = 1;
  u64 seed = 1;
  optimizer_settings optimizer{};
  skip_settings skipping{};
  recompute_policy recompute = recompute_policy::none;
};

/// What a step gave.
struct step_result {
  u64 step = 0;                  ///< steps done, this one included
  double loss = 0;
  double gradient_norm = 0;      ///< before clipping
  double learning_rate = 0;
  bool skipped = false;          ///< nothing was updated
  std::string reason{};          ///< why, as the end of a sentence
};

/// Its outputs (predict, evaluate) are those of the weights as they are at each call.
class basic_trainer : public model_outputs, private engine_host {
 public:
  /// Errors: config (device), resource (memory), model (a bound beyond what the model takes).
  basic_trainer(const model_binding& model, trainer_options o)
      : model_outputs(model.graph, model.device(o.device).real, {o.batch, o.time}), model_(model), options_(std::move(o)), choice_(model.device(options_.device)), context_(choice_.make(options_.device, options_.threads)), queue_(loop_) {
    check_bounds();
    engine_options e;
    e.seed = options_.seed;
    e.bounds = {micro_batch_rows(), options_.time};
    e.optimizer = options_.optimizer;
    e.skipping = options_.skipping;
    e.make_codec = [&m = model_](const edge&) { return m.make_codec(no_compression::label, {}); };
    engine_ = std::make_unique<engine>(model_.graph, one_stage(), device(), std::move(e), loop_, queue_, static_cast<engine_host&>(*this));
    data_.inputs.resize(model_.graph.nodes.size());
  }
  /// Trains on one batch; its memory is only read, and only during the call. Errors, after which a next step may be
  /// taken: model; diverged: this one and those before it, `skipping.most_in_row` in all, were skipped, which changed no
  /// weight. It counts as done, and the next is an error too unless it is accepted. Error, after which `step` and `save` are
  /// the same error until `load`: numeric, an update left an infinity or NaN in a weight.
  step_result step(const batch_view& b) {
    expect_whole();
    const bound_batch bound = bind(b, model_.graph, choice_.real, {options_.batch, options_.time});
    data_.step = engine_->next_step();
    data_.rows = bound.run.batch;
    data_.time = bound.run.time;
    for (const auto& e : bound.inputs()) data_.inputs[std::size_t(e.node)] = e.input.data;
    failure_.reset();
    engine_->start(data_);
    while (!engine_->idle() && !failure_ && loop_.run_one(reactor::forever)) {
    }
    if (failure_) {
      spoiled_ = failure_->code() == errc::numeric;
      throw error(*failure_);
    }
    const u64 most = options_.skipping.most_in_row;
    if (most && engine_->history().skipped_in_row() >= most) throw diverged(last_.step, engine_->history(), last_.reason);
    return last_;
  }

  forward_pass& pass_of(int node) override {
    for (auto& [n, pass] : passes_)
      if (n == node) return *pass;
    passes_.push_back({node, std::make_unique<local_forward>(inference(
                                 model_.graph, node, device(), {micro_batch_rows(), options_.time}, [this](int p) -> void* {
                                   engine_->parameters().to_device();
                                   return engine_->parameters().find(p)->weight;
                                 }))});
    return *passes_.back().second;
  }

  /// A parameter's memory, valid while the trainer is. Of a device with memory of its own it is a copy, which the device
  /// takes over with its next work, and which is current until then. Errors: model, for a name that the model has not.
  tensor_ref parameter(std::string_view n) {
    const int p = parameter_of(n);
    engine_->parameters().to_host();
    engine_->parameters().host_writes();
    return {engine_->parameters().find(p)->host_weight, model_.graph.params[std::size_t(p)].dims, weights_beside(choice_.real)};
  }
  /// Its gradient in the last step, before clipping; valid until the next step.
  tensor_ref gradient(std::string_view n) {
    const int p = parameter_of(n);
    std::byte* g = engine_->parameters().find(p)->gradient;
    if (!g) fail(errc::model, "there is no gradient of '", n, "' yet: take a step first");
    const extents& dims = model_.graph.params[std::size_t(p)].dims;
    const dtype type = weights_beside(choice_.real);
    if (device_memory* m = context_->memory()) {
      auto& copy = gradients_[p];
      copy.resize(std::size_t(dims.count()) * size_of(type));
      m->read(copy.data(), g, copy.size());
      g = copy.data();
    }
    return {g, dims, type};
  }
  /// Shows every node's output (and cotangent) of later steps to `o` while it is there; an empty one ends it.
  void observe(value_observer o) { engine_->compute().observe(std::move(o)); }

  /// Steps done.
  u64 steps() const { return engine_->next_step(); }
  const weight_names& file_names() const { return *model_.file_names; }
  std::string_view device_name() const { return choice_.name; }

  /// Writes weights, optimizer state and step to a file, which appears whole or not at all. Errors: checkpoint, resource,
  /// numeric (see `step`).
  void save(const std::string& path) {
    expect_whole();
    checkpoint_writer w(path, {model_.fingerprint, engine_->next_step()});
    each_record([&](const std::string& name, const extents& dims, std::span<std::byte> data) { w.add(name, weights_beside(choice_.real), dims, data); });
    write_history(w, engine_->history());
    w.finish();
  }
  /// Reads what `save` or a distributed run wrote for this model. Errors: checkpoint; nothing is changed then.
  void load(const std::string& path) {
    checkpoint_reader r(path);
    r.expect_model(model_.fingerprint);
    r.verify();
    const auto read = [&](const std::string& name, const extents& dims, std::span<std::byte> data) { r.read(name, weights_beside(choice_.real), dims, data); };
    each_record([&](const std::string& name, const extents& dims, std::span<std::byte> data) {
      const auto* found = r.find(name);
      if (!found || found->type != weights_beside(choice_.real) || found->dims != dims) read(name, dims, data);  // says what is wrong, before any is read
    });
    const loss_history history = read_history(r);
    engine_->parameters().host_writes();
    each_record(read);
    engine_->set_next_step(r.info().step);
    engine_->set_history(history);
    spoiled_ = false;
  }

 private:
  /// f(name, shape, memory) for everything that a checkpoint holds.
  template <class F>
  void each_record(F&& f) {
    engine_->parameters().to_host();
    for (auto& x : engine_->parameters().parameters()) {
      const parameter_info& p = model_.graph.params[std::size_t(x.parameter)];
      const std::size_t bytes = p.count() * size_of(weights_beside(choice_.real));
      for (auto [suffix, data] : {std::pair{"", x.host_weight}, {":m", x.host_m}, {":v", x.host_v}})
        f(std::string(p.path.view()) + suffix, p.dims, std::span(data, bytes));
    }
  }
  void send(int, const frame_header&, std::span<const std::byte>, u64) override {}
  void on_step(const step_report& r) override {
    last_ = {r.step + 1, r.verdict.loss, r.verdict.gradient_norm, r.learning_rate, r.verdict.skipped,
             reason_of(r.verdict, model_.graph, engine_->the_plan())};
  }
  void on_failure(const error& e) override { failure_ = e; }

  void expect_whole() const {
    if (spoiled_) fail(errc::numeric, "the trainer's weights are of no use until a checkpoint is loaded: ", failure_->what());
  }

  i64 micro_batch_rows() const { return (options_.batch + options_.micro_batches - 1) / options_.micro_batches; }
  device_binding device() { return {choice_.kernels, choice_.vectors, context_.get(), choice_.real}; }

  void check_bounds() const {
    if (options_.batch < 1 || options_.time < 1 || options_.micro_batches < 1)
      fail(errc::config, "batch ", options_.batch, ", time ", options_.time, ", micro_batches ", options_.micro_batches,
           ": expected 1 or more each");
    check_time(model_.graph, options_.time);
  }
  plan one_stage() const {
    plan p;
    p.scheduler = "in process";
    p.stage_of.assign(model_.graph.nodes.size(), 0);
    p.peers = {{0}};
    p.micro_batches = options_.micro_batches;
    p.groups = options_.groups;
    p.recompute = options_.recompute;
    check(p, model_.graph, 1);
    return p;
  }

  int parameter_of(std::string_view n) const {
    const int p = find_parameter(model_.graph, n);
    if (p < 0) fail(errc::model, "the model has no parameter '", n, "': graph().params has the names of its own");
    return p;
  }

  const model_binding& model_;
  trainer_options options_;
  const device_choice& choice_;
  std::unique_ptr<device_context> context_;
  virtual_reactor loop_;
  inline_queue queue_;
  std::unique_ptr<engine> engine_;
  step_data data_;
  step_result last_;
  std::optional<error> failure_;  ///< of the last step
  bool spoiled_ = false;          ///< by it: weights are partly updated
  std::vector<std::pair<int, std::unique_ptr<forward_pass>>> passes_;  ///< by node, of those that were asked for
  std::map<int, std::vector<std::byte>> gradients_;  ///< by parameter: copies of those that were asked for
};

}  // namespace fusionllm::inline v0
