// SPDX-License-Identifier: Apache-2.0
// A model as a run left it: what `generate` and `evaluate` begin with.
#pragma once

#include "config_file.hpp"
#include "program.hpp"
#include "run_folder.hpp"
#include "settings.hpp"

namespace fusionllm::inline v0 {

/// The configuration of the run in `folder` under those of `line`: a trained model is used with the sizes that it was
/// trained with. Errors: errc::config, errc::usage.
inline void apply_run_folder(const std::string& folder, run_config& c) {
  const run_folder f(folder);
  struct stat info{};
  if (::stat(f.config_file().c_str(), &info) != 0)
    fail(errc::checkpoint, "'", folder, "' is no run folder: it has no config.json; name the folder that --run was given");
  apply_config_file(f.config_file(), c);
  c.run = folder;
  c.resume = false;
}

/// The checkpoint that the command names, or the newest whole one of its run folder. Errors: errc::usage when neither is
/// named; errc::checkpoint.
inline std::string trained_checkpoint(const command_call& call) {
  std::string path = call.options.checkpoint;
  if (path.empty() && call.config.run.empty()) fail(errc::usage, "nothing to load: give --run FOLDER or --checkpoint FILE");
  if (path.empty()) {
    const auto found = run_folder(call.config.run).checkpoints().find_newest(call.model.fingerprint);
    for (const auto& why : found.damaged) std::fprintf(call.notes, "warning: %s\n", why.c_str());
    if (!found.newest) fail(errc::checkpoint, "run folder '", call.config.run, "' holds no whole checkpoint: train first");
    path = found.newest->path();
  }
  return path;
}

/// Loads it.
inline std::string load_trained(const command_call& call, basic_trainer& t) {
  const std::string path = trained_checkpoint(call);
  t.load(path);
  return path;
}

}  // namespace fusionllm::inline v0
