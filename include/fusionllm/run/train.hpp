// SPDX-License-Identifier: Apache-2.0
// `train`: the whole run in this process.
#pragma once

#include "../trainer/held_out.hpp"
#include "memory_check.hpp"
#include "open_data.hpp"
#include "settings.hpp"
#include "sinks.hpp"
#include "stop_signal.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// A run in one process: steps, held-out losses, checkpoints, each told to the sinks.
class single_run {
 public:
  single_run(const command_call& call, const data_source& data, event_sinks& events)
      : c_(call.config), fingerprint_(call.model.fingerprint), data_(data), events_(events), trainer_(call.model, trainer_options_of(c_)),
        buffers_(call.model.graph, trainer_.real_type(), {c_.batch, c_.time}) {
    if (!c_.run.empty()) folder_.emplace(c_.run);
  }

  basic_trainer& trainer() { return trainer_; }

  /// Takes up the newest checkpoint. Errors: errc::checkpoint when there is none.
  void resume() {
    const auto found = folder_->checkpoints().find_newest(fingerprint_);
    for (const auto& why : found.damaged) events_.on_message({severity::warning, why});
    if (!found.newest)
      fail(errc::checkpoint, "run folder '", c_.run, "' holds no whole checkpoint to resume from: leave out --resume");
    trainer_.load(found.newest->path());
    saved_ = trainer_.steps();
    events_.on_message({severity::info, "resumed after step " + std::to_string(saved_)});
  }

  /// Runs to the end, or until `stop`. True when it was stopped.
  bool run(const stop_signal& stop) {
    const u64 last = c_.stop_after > 0 ? (std::min)(u64(c_.stop_after), u64(c_.steps)) : u64(c_.steps);
    if (trainer_.steps() >= last)
      events_.on_message({severity::info, "nothing left to do: step " + std::to_string(trainer_.steps()) + " of "
                                              + std::to_string(last) + " is done"});
    while (trainer_.steps() < last && !stop.requested()) {
      step();
      const u64 done = trainer_.steps();
      if (c_.validation_interval > 0 && done % u64(c_.validation_interval) == 0) validate();
      if (c_.checkpoint_interval > 0 && done % u64(c_.checkpoint_interval) == 0) try_save();
    }
    if (saved_ != trainer_.steps()) save();
    if (!stop.requested() && validated_ != trainer_.steps()) validate();
    return stop.requested();
  }

 private:
  u64 tokens(i64 rows) const { return u64(tokens_in(trainer_.graph(), {rows, c_.time})); }

  void step() {
    const auto begin = std::chrono::steady_clock::now();
    buffers_.fill(data_, trainer_.steps(), 0, c_.batch);
    const step_result r = trainer_.step(buffers_.batch(c_.batch));
    if (r.skipped) events_.on_message({severity::warning, "step " + std::to_string(r.step) + " was skipped: " + r.reason});
    step_event e;
    e.step = r.step, e.steps = u64(c_.steps), e.loss = r.loss, e.learning_rate = r.learning_rate;
    e.gradient_norm = r.gradient_norm, e.tokens = tokens(c_.batch), e.seconds = seconds_since(begin);
    e.skipped = r.skipped, e.reason = r.reason;
    events_.on_step(e);
  }

  void validate() {
    validated_ = trainer_.steps();
    const auto begin = std::chrono::steady_clock::now();
    const held_out_loss r = evaluate_held_out(trainer_, data_, buffers_, c_.validation_batches);
    if (r.rows > 0) events_.on_validation({validated_, r.loss, tokens(r.rows), seconds_since(begin)});
  }

  void save() {
    if (!folder_) return;
    const auto begin = std::chrono::steady_clock::now();
    const std::string path = folder_->checkpoints().file_of(trainer_.steps());
    trainer_.save(path);
    folder_->checkpoints().keep_newest(c_.keep, trainer_.steps());
    saved_ = trainer_.steps();
    struct stat info{};
    ::stat(path.c_str(), &info);
    events_.on_checkpoint({saved_, path, u64(info.st_size), seconds_since(begin)});
  }
  /// In the middle of a run a failed save is a warning: what was saved before is still there.
  void try_save() {
    try {
      save();
    } catch (const error& e) {
      events_.on_message({severity::warning, std::string(e.what()) + "; training goes on"});
    }
  }

  const run_config& c_;
  u64 fingerprint_;
  const data_source& data_;
  event_sinks& events_;
  basic_trainer trainer_;
  data_buffers buffers_;
  std::optional<run_folder> folder_;
  u64 saved_ = ~u64(0), validated_ = ~u64(0);
};

}  // namespace detail

inline int train_command(const command_call& call) {
  check_memory(call.model, call.config);
  const auto data = open_data(call);
  command_sinks sinks(call, data->digest());
  detail::single_run run(call, *data, sinks.all);
  if (call.config.resume) run.resume();
  sinks.begin();
  sinks.all.on_message({severity::info, data->describe()});
  const stop_signal stop;
  const bool stopped = run.run(stop);
  sinks.finish(call);
  if (stopped) fail(errc::interrupted, "stopped after step ", run.trainer().steps(), call.config.run.empty() ? "" : ": go on with --resume");
  return 0;
}

}  // namespace fusionllm::inline v0
