// SPDX-License-Identifier: Apache-2.0
// A sink that adds a run up: losses, the median step beside the predicted one, and what each link carried.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "../simulate/table.hpp"
#include "../trainer/events.hpp"
#include "../trainer/json_text.hpp"

namespace fusionllm::inline v0 {

class run_summary final : public event_sink {
 public:
  struct link {
    std::string from, to, codec;
    u64 raw_bytes = 0, sent_bytes = 0;
    double seconds = 0;
  };

  void on_step(const step_event& e) override {
    if (first_loss_ != first_loss_) first_loss_ = e.loss;
    step_ = e.step;
    loss_ = e.loss;
    tokens_ += e.tokens;
    if (e.predicted_seconds > 0) predicted_ = e.predicted_seconds;
    seconds_.push_back(e.seconds);
    for (const link_usage& l : e.links) {
      link& sum = link_of(l.from, l.to);
      sum.codec = l.codec;
      sum.raw_bytes += l.raw_bytes, sum.sent_bytes += l.sent_bytes, sum.seconds += l.seconds;
    }
  }
  void on_validation(const validation_event& e) override { validation_ = e.loss; }
  void on_checkpoint(const checkpoint_event& e) override { checkpoint_ = e.path; }

  u64 steps_seen() const { return seconds_.size(); }
  double validation_loss() const { return validation_; }
  const std::vector<link>& links() const { return links_; }
  /// Of the steps but the first, which also touches memory for the first time; NaN before any.
  double median_step() const {
    if (seconds_.empty()) return std::nan("");
    std::vector<double> s(seconds_.begin() + (seconds_.size() > 2), seconds_.end());
    std::nth_element(s.begin(), s.begin() + long(s.size() / 2), s.end());
    return s[s.size() / 2];
  }
  double predicted_step() const { return predicted_; }

  std::string table() const {
    std::string text;
    char line[400];
    const auto add = [&](const char* format, auto... values) {
      std::snprintf(line, sizeof line, format, values...);
      text += line;
    };
    text_table links({"link", "compressor", ">raw MB", ">sent MB", ">ratio", ">seconds"});
    const auto fixed = [&](double x) { return std::snprintf(line, sizeof line, "%.2f", x), std::string(line); };
    for (const link& l : links_)
      links.row({l.from + " -> " + l.to, l.codec, fixed(double(l.raw_bytes) / 1e6), fixed(double(l.sent_bytes) / 1e6),
                 fixed(l.sent_bytes ? double(l.raw_bytes) / double(l.sent_bytes) : 0), fixed(l.seconds)});
    if (!links.empty()) text += links.text();
    if (steps_seen() > 0) {
      add("steps %llu, loss %.4f to %.4f, median step %.1f ms", static_cast<unsigned long long>(steps_seen()), first_loss_, loss_,
          1e3 * median_step());
      if (predicted_ > 0) add(" (predicted %.1f ms, %+.1f %%)", 1e3 * predicted_, 100 * (predicted_ / median_step() - 1));
      text += '\n';
    }
    if (validation_ == validation_) add("held-out loss %.4f nats\n", validation_);
    return text;
  }

  std::string json() const {
    json_text j(2);
    j.begin_object().field("step", step_).field("loss", loss_).field("validation_loss", validation_);
    j.field("median_step_seconds", median_step()).field("predicted_step_seconds", predicted_).field("tokens", tokens_);
    j.field("checkpoint", std::string_view(checkpoint_)).key("links").begin_array();
    for (const link& l : links_) {
      j.begin_object().field("from", std::string_view(l.from)).field("to", std::string_view(l.to));
      j.field("codec", std::string_view(l.codec)).field("raw_bytes", l.raw_bytes).field("sent_bytes", l.sent_bytes);
      j.field("seconds", l.seconds).end_object();
    }
    return j.end_array().end_object().take() + '\n';
  }

 private:
  link& link_of(std::string_view from, std::string_view to) {
    for (link& l : links_)
      if (l.from == from && l.to == to) return l;
    links_.push_back({std::string(from), std::string(to), {}, 0, 0, 0});
    return links_.back();
  }

  u64 step_ = 0, tokens_ = 0;
  double first_loss_ = std::nan(""), loss_ = std::nan(""), validation_ = std::nan(""), predicted_ = 0;
  std::string checkpoint_;
  std::vector<double> seconds_;
  std::vector<link> links_;
};

}  // namespace fusionllm::inline v0
