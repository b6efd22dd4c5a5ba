// SPDX-License-Identifier: Apache-2.0
// A sink that writes one JSON object a line: what a run did, for programs. Each line is whole when it is written; a run
// that goes on appends to the lines of the one before.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "../core/error.hpp"
#include "events.hpp"
#include "json_text.hpp"

namespace fusionllm::inline v0 {

class json_lines final : public event_sink {
 public:
  /// Appends to `path`. Errors: errc::resource when it cannot be opened or written.
  explicit json_lines(std::string path) : path_(std::move(path)) {
    struct stat info{};
    if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      fail(errc::resource, "'", path_, "' is no file: remove what is there, it is for the run's lines");
    file_.reset(std::fopen(path_.c_str(), "ae"));
    if (!file_) fail(errc::resource, "cannot write '", path_, "': ", std::strerror(errno), ": check the run folder");
  }

  void on_step(const step_event& e) override {
    json_text j;
    j.begin_object().field("event", "step").field("step", e.step).field("loss", e.loss);
    j.field("learning_rate", e.learning_rate).field("gradient_norm", e.gradient_norm).field("tokens", e.tokens);
    j.field("tokens_per_second", e.tokens_per_second()).field("seconds", e.seconds).field("skipped", e.skipped);
    if (e.skipped) j.field("reason", e.reason);
    if (e.predicted_seconds > 0) j.field("predicted_seconds", e.predicted_seconds);
    j.key("links").begin_array();
    for (const link_usage& l : e.links) {
      j.begin_object().field("from", l.from).field("to", l.to).field("codec", l.codec).field("raw_bytes", l.raw_bytes);
      j.field("sent_bytes", l.sent_bytes).field("seconds", l.seconds).end_object();
    }
    j.end_array().end_object();
    write(j);
  }
  void on_validation(const validation_event& e) override {
    json_text j;
    j.begin_object().field("event", "validation").field("step", e.step).field("loss", e.loss);
    write(j.field("tokens", e.tokens).field("seconds", e.seconds).end_object());
  }
  void on_checkpoint(const checkpoint_event& e) override {
    json_text j;
    j.begin_object().field("event", "checkpoint").field("step", e.step).field("path", e.path);
    write(j.field("bytes", e.bytes).field("seconds", e.seconds).end_object());
  }
  void on_message(const message_event& e) override {
    json_text j;
    j.begin_object().field("event", e.level == severity::warning ? "warning" : "message");
    write(j.field("text", e.text).end_object());
  }

 private:
  void write(json_text& j) {
    const std::string line = j.take() + '\n';
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
      fail(errc::resource, "cannot write '", path_, "': ", std::strerror(errno), ": is the disk full?");
  }

  struct close_file {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, close_file> file_;
};

}  // namespace fusionllm::inline v0
