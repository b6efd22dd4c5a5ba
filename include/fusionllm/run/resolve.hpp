// SPDX-License-Identifier: Apache-2.0
// The configuration of a command, from all that says a part of it: defaults, then the run folder's file (of a trained
// model), then --config, then the environment, then flags.
#pragma once

#include <cstdlib>

#include "../estimate/topology_json.hpp"
#include "trained.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// What a key of the command is where nobody says it.
inline run_config usual_config(const command_line& line, const run_config& defaults) {
  run_config c = defaults;
  if (line.command->trained) use_here(c);
  return c;
}

/// Errors: errc::config, errc::usage, errc::checkpoint, errc::topology.
inline run_config resolve(const command_line& line, const run_config& defaults) {
  run_config c = usual_config(line, defaults), flags = defaults;
  apply(line, flags);
  if (line.command->trained && !flags.run.empty()) apply_run_folder(flags.run, c);
  const i64 usual_interval = std::exchange(c.validation_interval, -1);  // until somebody says one
  if (!line.options.config.empty()) apply_config_file(line.options.config, c);
  if (const char* token = std::getenv("FUSIONLLM_TOKEN")) c.token = token;
  apply(line, c);
  if (c.validation_interval > 0 && (line.command->name == "local" || line.command->name == "broker"))
    fail(errc::config, "validation_interval is ", c.validation_interval, ", a run over peers has its held-out loss at the end alone: say "
         "--validation-interval 0, or use train");
  if (c.validation_interval < 0) c.validation_interval = usual_interval;
  check(c);
  if (c.peers == 0) c.peers = c.topology.empty() ? 1 : expand(load_topology(c.topology)).size();
  return c;
}

}  // namespace detail

}  // namespace fusionllm::inline v0
