// SPDX-License-Identifier: Apache-2.0
// The reports of peers, made into steps of the whole run: one is complete when every peer that works has reported it, and
// steps come out in order. A peer's traffic is counted since the run began, a step's links since the step before.
#pragma once

#include <deque>
#include <optional>

#include "../runtime/engine_host.hpp"
#include "broker_host.hpp"
#include "control.hpp"

namespace fusionllm::inline v0 {

/// What a peer says of a step; its traffic is the caller's to add.
inline report to_message(const step_report& r) {
  report m;
  m.step = r.step;
  m.loss = r.verdict.loss;
  m.gradient_norm = r.verdict.gradient_norm;
  m.learning_rate = r.learning_rate;
  const fault& f = r.verdict.first;
  m.skipped = u32(r.verdict.reason);
  m.mean_loss = r.verdict.mean_loss;
  m.kind = u32(f.kind), m.micro_batch = f.micro_batch, m.node = f.node, m.parameter = f.parameter, m.peer = f.peer;
  m.elapsed = r.elapsed;
  m.computed = r.computed;
  return m;
}
inline step_verdict verdict_of(const report& r) {
  step_verdict v;
  v.loss = r.loss;
  v.skipped = r.skipped != 0;
  v.reason = r.skipped <= u32(skip_reason::loss_spike) ? skip_reason(r.skipped) : skip_reason::not_finite;
  v.mean_loss = r.mean_loss;
  v.first = {r.kind <= u32(fault_kind::loss) ? fault_kind(r.kind) : fault_kind::activation, r.micro_batch, r.node, r.parameter, r.peer};
  return v;
}

class step_reports {
 public:
  /// `works`: by rank, whether it has a stage. `first_step`: steps that are done.
  void begin(const graph_view& g, const plan& p, flags works, std::vector<std::string> titles, u64 first_step) {
    graph_ = g;
    plan_ = p;
    works_ = std::move(works);
    titles_ = std::move(titles);
    done_.assign(works_.size(), first_step);
    last_.assign(works_.size(), report{});
  }

  bool works(u64 rank) const { return rank < works_.size() && works_[std::size_t(rank)]; }
  /// Steps that it has reported.
  u64 done(u64 rank) const { return done_[std::size_t(rank)]; }
  /// Of those who work the least, `most` where nobody does.
  u64 slowest(u64 most) const {
    for (std::size_t i = 0; i < works_.size(); ++i)
      if (works_[i]) most = (std::min)(most, done_[i]);
    return most;
  }

  /// Errors: protocol, for a step that is not its next one, or not granted.
  void add(u64 rank, report r, u64 granted) {
    if (r.step != done(rank) || r.step >= granted)
      fail(errc::protocol, titles_[std::size_t(rank)], " reports step ", r.step, ", expected ", done(rank), " of ", granted, " granted ones");
    for (const auto& t : r.traffic)
      if (t.to >= works_.size()) fail(errc::protocol, titles_[std::size_t(rank)], " reports traffic to peer ", t.to, " of ", works_.size());
    pending& x = pending_of(r.step + 1);
    cluster_step& s = x.step;
    s.loss = r.loss;
    s.gradient_norm = r.gradient_norm;
    s.learning_rate = r.learning_rate;
    s.skipped = r.skipped != 0;
    if (s.skipped && s.reason.empty()) s.reason = reason_of(verdict_of(r), graph_, plan_, titles_);
    s.elapsed = std::max<nanoseconds>(s.elapsed, r.elapsed);
    for (const auto& t : r.traffic) s.links.push_back(difference(int(rank), t, last_[std::size_t(rank)]));
    ++x.reports;
    done_[std::size_t(rank)] = r.step + 1;
    last_[std::size_t(rank)] = std::move(r);
  }
  /// The next step that is complete.
  std::optional<cluster_step> take() {
    if (pending_.empty() || pending_.front().reports != std::count(works_.begin(), works_.end(), u8(1))) return std::nullopt;
    cluster_step s = std::move(pending_.front().step);
    pending_.pop_front();
    s.predicted = plan_.predicted_step;
    return s;
  }

 private:
  struct pending {
    cluster_step step;
    std::ptrdiff_t reports = 0;
  };
  // Whoever reports is at its next step: a new one comes after all that are pending.
  pending& pending_of(u64 step) {
    for (pending& x : pending_)
      if (x.step.step == step) return x;
    pending_.emplace_back().step.step = step;
    return pending_.back();
  }
  static cluster_step::link difference(int from, const traffic_message& now, const report& before) {
    cluster_step::link l{from, int(now.to), now.messages, now.raw, now.encoded, now.wire, now.busy};
    for (const auto& t : before.traffic)
      if (t.to == now.to) {
        l.messages -= t.messages;
        l.raw -= t.raw;
        l.encoded -= t.encoded;
        l.wire -= t.wire;
        l.busy -= t.busy;
      }
    return l;
  }

  graph_view graph_;
  plan plan_;
  flags works_;
  std::vector<std::string> titles_;
  std::vector<u64> done_;
  std::vector<report> last_;
  std::deque<pending> pending_;
};

}  // namespace fusionllm::inline v0
