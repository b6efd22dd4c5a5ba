// SPDX-License-Identifier: Apache-2.0
// Where the events of a running command go: its progress, its summary, and the lines of its run folder.
#pragma once

#include <chrono>

#include "../trainer/json_lines.hpp"
#include "program.hpp"
#include "progress.hpp"
#include "run_folder.hpp"
#include "summary.hpp"

namespace fusionllm::inline v0 {

namespace detail {
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
}  // namespace detail

/// The sinks that every running command has: progress, summary, the run folder's lines.
class command_sinks {
 public:
  command_sinks(const command_call& call, u64 data_digest) : call_(call), data_digest_(data_digest), summary_() {
    all.add(summary_);
    if (!call.config.run.empty()) {
      const run_folder folder(call.config.run);
      lock_ = folder.lock();
      folder.open(call.config, data_digest);
      if (!folder.holds_run()) begin();
      else if (!call.config.overwrite) open_lines();
    }
    if (!call.options.quiet) {
      progress_ = std::make_unique<progress>(call.options.json ? call.notes : call.out, u64(call.config.log_interval));
      progress_->count(name_of_tokens(call.model.graph));
      all.add(*progress_);
    }
  }
  /// The first step is about to begin: what the run overwrites is removed now, and not for a run that cannot begin.
  void begin() {
    if (call_.config.run.empty() || std::exchange(begun_, true)) return;
    run_folder(call_.config.run).begin(call_.config, data_digest_);
    if (!lines_) open_lines();
  }
  /// Prints what the run came to.
  void finish(const command_call& call) {
    progress_.reset();
    std::fputs((call.options.json ? summary_.json() : summary_.table()).c_str(), call.out);
  }

  event_sinks all;

 private:
  void open_lines() {
    lines_ = std::make_unique<json_lines>(run_folder(call_.config.run).metrics_file());
    all.add(*lines_);
  }

  const command_call& call_;
  u64 data_digest_;
  bool begun_ = false;
  detail::descriptor lock_;
  run_summary summary_;
  std::unique_ptr<json_lines> lines_;
  std::unique_ptr<progress> progress_;
};

}  // namespace fusionllm::inline v0
