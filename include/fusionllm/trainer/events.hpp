// SPDX-License-Identifier: Apache-2.0
// What a run tells those who started it. The library prints nothing: a sink given by the caller receives each event, in
// order, on the thread that runs the step.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// One directed link in one step.
struct link_usage {
  std::string_view from, to;  ///< names of peers
  std::string_view codec;
  u64 raw_bytes = 0;          ///< tensors as they are
  u64 sent_bytes = 0;         ///< as sent, with headers
  double seconds = 0;         ///< in which the link was busy
};

struct step_event {
  u64 step = 0;   ///< the steps that are done, this one included
  u64 steps = 0;  ///< of the whole run
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  u64 tokens = 0;            ///< of the batch (samples, of a model without time)
  double seconds = 0;        ///< measured
  double predicted_seconds = 0;  ///< by the simulator; 0: not predicted
  std::span<const link_usage> links;
  bool skipped = false;        ///< nothing was updated
  std::string_view reason;     ///< why

  double tokens_per_second() const { return seconds > 0 ? double(tokens) / seconds : 0; }
};

struct validation_event {
  u64 step = 0;
  double loss = 0;
  u64 tokens = 0;  ///< as those of a step
  double seconds = 0;
};

struct checkpoint_event {
  u64 step = 0;
  std::string_view path;
  u64 bytes = 0;
  double seconds = 0;
};

enum class severity : u8 { info, warning };
struct message_event {
  severity level = severity::info;
  std::string_view text;
};

/// Receives events; overrides what it wants. Views in events are gone after the call.
class event_sink {
 public:
  virtual ~event_sink() = default;
  virtual void on_step(const step_event&) {}
  virtual void on_validation(const validation_event&) {}
  virtual void on_checkpoint(const checkpoint_event&) {}
  virtual void on_message(const message_event&) {}
};

/// Passes events on to any number of sinks, which must outlive it.
class event_sinks final : public event_sink {
 public:
  void add(event_sink& s) { sinks_.push_back(&s); }
  void on_step(const step_event& e) override { pass(&event_sink::on_step, e); }
  void on_validation(const validation_event& e) override { pass(&event_sink::on_validation, e); }
  void on_checkpoint(const checkpoint_event& e) override { pass(&event_sink::on_checkpoint, e); }
  void on_message(const message_event& e) override { pass(&event_sink::on_message, e); }

 private:
  template <class Event>
  void pass(void (event_sink::*on)(const Event&), const Event& e) {
    for (event_sink* s : sinks_) (s->*on)(e);
  }
  std::vector<event_sink*> sinks_;
};

}  // namespace fusionllm::inline v0
