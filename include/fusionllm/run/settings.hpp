// SPDX-License-Identifier: Apache-2.0
// From the keys of a configuration to the settings of the layers below.
#pragma once

#include <cmath>

#include "../cluster/settings.hpp"
#include "../trainer/basic_trainer.hpp"
#include "../trainer/config_text.hpp"

namespace fusionllm::inline v0 {

/// The parts of a list with commas; spaces around them are nothing.
inline std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> r;
  while (!text.empty()) {
    const std::size_t end = (std::min)(text.find(','), text.size());
    std::string_view one = text.substr(0, end);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    if (!one.empty()) r.emplace_back(one);
    text.remove_prefix((std::min)(end + 1, text.size()));
  }
  return r;
}

inline skip_settings skipping_of(const run_config& c) { return {u64(c.max_skipped), c.spike_factor}; }
inline recompute_policy recompute_of(const run_config& c) {
  return c.recompute == "block" ? recompute_policy::block : c.recompute == "selective" ? recompute_policy::selective : recompute_policy::none;
}

inline optimizer_settings optimizer_of(const run_config& c) {
  optimizer_settings o;
  o.kind = c.optimizer == "sgd" ? optimizer_kind::sgd : optimizer_kind::adamw;
  o.learning_rate = c.learning_rate;
  o.minimum_rate = c.min_learning_rate;
  o.warmup_steps = u64(c.warmup);
  o.total_steps = c.learning_rate_schedule == "constant" ? 0 : u64(c.steps);
  o.shape = c.learning_rate_schedule == "linear" ? rate_shape::linear : rate_shape::cosine;
  o.no_decay = list_of(c.no_decay);
  o.freeze = list_of(c.freeze);
  o.adamw.beta1 = c.beta1;
  o.adamw.beta2 = c.beta2;
  o.adamw.epsilon = c.epsilon;
  o.adamw.weight_decay = c.weight_decay;
  o.momentum = c.momentum;
  o.clip_norm = c.clip;
  return o;
}

/// An output of whole batches, cut as training cuts them.
inline forward_output whole_output(const run_config& c, int node) {
  return {node, inference_kind::whole, {(c.batch + c.micro_batches - 1) / c.micro_batches, c.time}, 1};
}

/// Of a trainer in this process.
inline trainer_options trainer_options_of(const run_config& c) {
  trainer_options o;
  o.device = c.device;
  o.threads = int(c.threads);
  o.batch = c.batch;
  o.time = c.time;
  o.micro_batches = int(c.micro_batches);
  o.groups = int(c.groups);
  o.seed = u64(c.seed);
  o.optimizer = optimizer_of(c);
  o.skipping = skipping_of(c);
  o.recompute = recompute_of(c);
  return o;
}

inline codec_options codec_options_of(const run_config& c) {
  codec_options o;
  o.ratio = c.ratio;
  if (!c.select.empty()) o.scope = c.select == "row" ? selection_scope::row : selection_scope::tensor;
  if (!c.values.empty()) o.values = c.values == "f32" ? value_coding::f32 : c.values == "f16" ? value_coding::f16 : value_coding::int8;
  return o;
}

inline nanoseconds duration_of(double seconds) { return nanoseconds(std::llround(seconds * 1e9)); }

/// Of the broker and the peers of a run, but for machines and plans that are read from files.
inline cluster_settings cluster_settings_of(const run_config& c) {
  cluster_settings s;
  s.peers = int(c.peers);
  s.steps = u64(c.steps);
  s.batch = c.batch;
  s.time = c.time;
  s.micro_batches = int(c.micro_batches);
  s.groups = int(c.groups);
  s.seed = u64(c.seed);
  s.optimizer = optimizer_of(c);
  s.skipping = skipping_of(c);
  s.recompute = recompute_of(c);
  s.schedule = c.schedule == "gpipe" ? schedule_kind::gpipe : schedule_kind::one_f_one_b;
  s.scheduler = c.scheduler;
  s.codec = c.compressor;
  s.codec_details = codec_options_of(c);
  s.emulate = c.emulate;
  s.strict_bits = c.strict_bits;
  s.checkpoint_interval = u64(c.checkpoint_interval);
  s.gather_timeout = duration_of(c.connect_timeout);
  s.step_timeout = duration_of(c.step_timeout);
  s.heartbeat = duration_of(c.heartbeat);
  s.silence_timeout = duration_of(c.silence_timeout);
  return s;
}

}  // namespace fusionllm::inline v0
