// SPDX-License-Identifier: Apache-2.0
// A sink that shows a run to people: on a terminal one line that moves, with a bar, loss, tokens/s and the time left;
// elsewhere a plain line every few steps.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "../trainer/events.hpp"

namespace fusionllm::inline v0 {

/// "1:02:03" or "2:03".
inline std::string clock_text(double seconds) {
  if (!(seconds >= 0 && seconds < 3.6e8)) return "?";
  const auto s = static_cast<long>(seconds + 0.5);
  char text[32];
  if (s < 3600) std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  else std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  return text;
}

/// The last steps' mean time, from which the time left follows.
class pace_meter {
 public:
  void add(double seconds) {
    const double weight = count_ < 20 ? 1.0 / double(++count_) : 0.05;
    mean_ += weight * (seconds - mean_);
  }
  double seconds_left(u64 steps) const { return mean_ * double(steps); }

 private:
  int count_ = 0;
  double mean_ = 0;
};

class progress final : public event_sink {
 public:
  /// `every`: steps between plain lines. `width`: columns of the terminal; 0: no terminal.
  progress(std::FILE* out, u64 every, int width) : out_(out), every_(std::max<u64>(every, 1)), width_(width) {}
  /// What is counted a second: tokens, unless told otherwise.
  void count(const char* things) { things_ = things; }
  /// Looks at `out` itself.
  progress(std::FILE* out, u64 every) : progress(out, every, columns_of(out)) {}
  ~progress() override { end_line(); }

  static int columns_of(std::FILE* out) {
    if (!::isatty(::fileno(out))) return 0;
    winsize size{};
    return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
  }

  void on_step(const step_event& e) override {
    pace_.add(e.seconds);
    const u64 left = e.steps > e.step ? e.steps - e.step : 0;
    if (width_ > 0) draw(e, left);
    else if (e.step % every_ == 0 || left == 0) plain(e, left);
  }
  void on_validation(const validation_event& e) override {
    end_line();
    std::fprintf(out_, "step %llu  held-out loss %.4f nats\n", number(e.step), e.loss);
    std::fflush(out_);
  }
  void on_checkpoint(const checkpoint_event& e) override {
    end_line();
    std::fprintf(out_, "step %llu  saved %.*s (%.1f MB)\n", number(e.step), int(e.path.size()), e.path.data(), double(e.bytes) / 1e6);
    std::fflush(out_);
  }
  void on_message(const message_event& e) override {
    end_line();
    std::fprintf(out_, "%s%.*s\n", e.level == severity::warning ? "warning: " : "", int(e.text.size()), e.text.data());
    std::fflush(out_);
  }

 private:
  static unsigned long long number(u64 n) { return n; }

  void plain(const step_event& e, u64 left) {
    std::fprintf(out_, "step %llu/%llu  loss %.4f  lr %.2e  norm %.3f  %.0f %s/s  %s left\n", number(e.step), number(e.steps),
                 e.loss, e.learning_rate, e.gradient_norm, e.tokens_per_second(), things_, clock_text(pace_.seconds_left(left)).c_str());
    std::fflush(out_);
  }
  void draw(const step_event& e, u64 left) {
    char text[200];
    std::snprintf(text, sizeof text, " %llu/%llu  loss %.4f  %.0f %s/s  %s left", number(e.step), number(e.steps), e.loss,
                  e.tokens_per_second(), things_, clock_text(pace_.seconds_left(left)).c_str());
    std::string line(text);
    const int cells = width_ - int(line.size()) - 3;
    if (cells >= 5) {
      const int room = (std::min)(cells, 40);
      const int full = e.steps ? int(u64(room) * (std::min)(e.step, e.steps) / e.steps) : 0;
      line = "[" + std::string(std::size_t(full), '#') + std::string(std::size_t(room - full), '.') + "]" + line;
    }
    line.resize(std::size_t((std::max)(width_ - 1, 1)), ' ');
    std::fprintf(out_, "\r%s", line.c_str());
    std::fflush(out_);
    open_ = true;
  }
  void end_line() {
    if (open_) std::fputc('\n', out_);
    open_ = false;
  }

  std::FILE* out_;
  u64 every_;
  int width_;
  const char* things_ = "tokens";
  bool open_ = false;
  pace_meter pace_;
};

}  // namespace fusionllm::inline v0
