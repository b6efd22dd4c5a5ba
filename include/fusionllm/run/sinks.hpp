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
  command_sinks(const command_call& call, u64 data_digest) : summary_() {
    all.add(summary_);
    if (!call.config.run.empty()) {
      run_folder(call.config.run).open(call.config, data_digest);
      lines_ = std::make_unique<json_lines>(run_folder(call.config.run).metrics_file());
      all.add(*lines_);
    }
    if (!call.options.quiet) {
      progress_ = std::make_unique<progress>(call.options.json ? call.notes : call.out, u64(call.config.log_interval));
      if (call.config.time == 1) progress_->count("samples");
      all.add(*progress_);
    }
  }
  /// Prints what the run came to.
  void finish(const command_call& call) {
    progress_.reset();
    std::fputs((call.options.json ? summary_.json() : summary_.table()).c_str(), call.out);
  }

  event_sinks all;

 private:
  run_summary summary_;
  std::unique_ptr<json_lines> lines_;
  std::unique_ptr<progress> progress_;
};

}  // namespace fusionllm::inline v0
