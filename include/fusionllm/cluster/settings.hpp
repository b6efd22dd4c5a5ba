// SPDX-License-Identifier: Apache-2.0
// What broker and peers of a run have in common, as numbers: configuration is another layer's.
#pragma once

#include <optional>

#include "../estimate/cluster.hpp"
#include "../runtime/optimizer.hpp"
#include "../runtime/question.hpp"
#include "../runtime/skipping.hpp"
#include "../schedule/plan.hpp"
#include "binding.hpp"

namespace fusionllm::inline v0 {

struct cluster_settings {
  int peers = 1;
  u64 steps = 1;                     ///< of the whole run
  i64 batch = 16;                    ///< samples a step
  i64 time = 128;
  int micro_batches = 4;
  int groups = 1;
  u64 seed = 1;
  optimizer_settings optimizer;
  skip_settings skipping;
  schedule_kind schedule = schedule_kind::one_f_one_b;
  recompute_policy recompute = recompute_policy::none;
  std::string scheduler;             ///< empty: the first compiled in
  std::string codec;                 ///< of slow links; "none": lossless
  codec_options codec_details;
  bool emulate = false;              ///< hold tasks and pace links as `machines` says
  std::optional<cluster> machines;   ///< from a topology file; else measured
  std::optional<plan> given_plan;    ///< made elsewhere
  std::vector<forward_output> outputs;  ///< questions about these are answered, instead of steps run; windows are the broker's
  bool strict_bits = false;          ///< peers that do not compute alike are an error, not a warning
  u64 checkpoint_interval = 0;       ///< steps; 0: only at the end
  nanoseconds gather_timeout = 60 * second;   ///< for all peers to have joined and reached each other
  nanoseconds step_timeout = 300 * second;    ///< without any progress
  nanoseconds heartbeat = second;
  nanoseconds silence_timeout = 10 * second;  ///< after which a peer that says nothing is taken for dead

  sizes micro_batch_bounds() const { return {(batch + micro_batches - 1) / micro_batches, time}; }
};

}  // namespace fusionllm::inline v0
