// SPDX-License-Identifier: Apache-2.0
// A model as a run left it: what `generate`, `evaluate` and `predict` begin with, in this process or over peers.
#pragma once

#include "config_file.hpp"
#include "peers_model.hpp"
#include "program.hpp"
#include "run_folder.hpp"
#include "settings.hpp"

namespace fusionllm::inline v0 {

/// Forgets where a model was trained, and on how much it was judged meanwhile: it is used in one process, and judged on all
/// that is held out, unless the command says otherwise.
inline void use_here(run_config& c) {
  const run_config none;
  c.validation_batches = 0;
  c.peers = none.peers, c.topology = none.topology, c.use = none.use, c.emulate = none.emulate;
  c.bind = none.bind, c.announce = none.announce, c.broker = none.broker, c.name = none.name, c.rank = none.rank;
  c.run_id = none.run_id, c.insecure_network = none.insecure_network;
}

/// The configuration of the run in `folder` under those of `line`: a trained model is used with the sizes that it was
/// trained with. Errors: errc::config, errc::usage.
inline void apply_run_folder(const std::string& folder, run_config& c) {
  const run_folder f(folder);
  struct stat info{};
  if (::stat(f.config_file().c_str(), &info) != 0)
    fail(errc::checkpoint, "'", folder, "' is no run folder: it has no config.json; name the folder that --run was given");
  apply_config_file(f.config_file(), c);
  use_here(c);
  c.run = folder;
  c.resume = false;
}

/// The checkpoint that the command names, or the newest whole one of its run folder. Errors: errc::usage when neither is
/// named; errc::checkpoint.
inline checkpoint_reader trained_checkpoint(const command_call& call) {
  if (!call.options.checkpoint.empty()) return checkpoint_reader(call.options.checkpoint);
  if (call.config.run.empty()) fail(errc::usage, "nothing to load: give --run FOLDER or --checkpoint FILE");
  auto found = run_folder(call.config.run).checkpoints().find_newest(call.model.fingerprint);
  for (const auto& why : found.damaged) std::fprintf(call.notes, "warning: %s\n", why.c_str());
  if (!found.newest) fail(errc::checkpoint, "run folder '", call.config.run, "' holds no whole checkpoint: train first");
  return std::move(*found.newest);  // what was verified, whatever becomes of the folder meanwhile
}

struct trained {
  std::string path;  ///< of the checkpoint
  u64 step = 0;
  std::unique_ptr<model_outputs> model;
};

/// Loads what `outputs` need, for batches of at most `bound`, here or over peers. Errors: errc::usage, errc::checkpoint,
/// errc::model; what ends a run.
inline trained open_trained(const command_call& call, const sizes& bound, std::vector<forward_output> outputs) {
  checkpoint_reader from = trained_checkpoint(call);
  trained t{from.path(), from.info().step, nullptr};
  if (over_peers(call)) t.model = std::make_unique<peers_model>(call, std::move(from), bound, std::move(outputs));
  else t.model = std::make_unique<weights_model>(call.model, call.config.device, int(call.config.threads), from, bound, outputs);
  return t;
}

}  // namespace fusionllm::inline v0
