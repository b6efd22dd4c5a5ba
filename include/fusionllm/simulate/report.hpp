// SPDX-License-Identifier: Apache-2.0
// What the `plan` and `simulate` commands print: stages, links, totals, notes.
#pragma once

#include "lower_bound.hpp"
#include "replay.hpp"
#include "table.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// x / unit with so many digits after the point.
inline std::string decimal(i64 x, i64 unit, int digits) {
  i64 power = 1;
  for (int i = 0; i < digits; ++i) power *= 10;
  const i64 n = scaled(u64(x), u64(power) * 2, u64(unit)) / 2;  // to the nearest
  std::string rest = std::to_string(n % power);
  return std::to_string(n / power) + (digits ? "." + std::string(std::size_t(digits) - rest.size(), '0') + rest : "");
}
inline std::string in_ms(nanoseconds t) { return decimal(t, millisecond, 2); }
inline std::string in_kb(u64 bytes) { return decimal(i64(bytes), 1000, 1); }

/// "7 h.0.ln layer_norm".
inline std::string node_title(const graph_view& g, int i) {
  const node& n = g.nodes[std::size_t(i)];
  std::string r = std::to_string(i) + " ";
  if (n.scope.length) r += std::string(n.scope.view()) + " ";
  return r + std::string(n.op->name);
}

/// Runs of neighbouring nodes of a stage, each "first .. last"; model inputs do not interrupt a run.
inline std::vector<std::string> stage_runs(const graph_view& g, const plan& p, int stage) {
  std::vector<std::string> r;
  int first = -1, last = -1;
  const auto close = [&] {
    if (first >= 0) r.push_back(first == last ? node_title(g, first) : node_title(g, first) + " .. " + node_title(g, last));
    first = -1;
  };
  for (int i = 0; i < g.size(); ++i) {
    if (g.nodes[std::size_t(i)].op->placeholder) continue;
    if (p.stage_of[std::size_t(i)] != stage) {
      close();
      continue;
    }
    if (first < 0) first = i;
    last = i;
  }
  close();
  return r;
}

inline std::string stage_table(const step_profile& f, const plan& p, const replay_result& r) {
  const cluster& c = f.problem().costs->machines();
  text_table t({"stage", "peer", "site", ">forward ms", ">backward ms", ">busy", ">memory GiB", ">in flight", ">operators", "from .. to"});
  for (int s = 0; s < p.stages(); ++s)
    for (int peer : p.peers[std::size_t(s)]) {
      nanoseconds forward = 0, backward = 0;
      int operators = 0;
      for (int i : f.order())
        if (p.stage_of[std::size_t(i)] == s) {
          forward = plus(forward, f.time(peer, i, direction::forward));
          backward = plus(backward, f.time(peer, i, direction::backward));
          ++operators;
        }
      const auto use = std::find_if(r.peers.begin(), r.peers.end(), [&](const peer_use& u) { return u.peer == peer; });
      const machine& m = c.peers[std::size_t(peer)];
      const auto runs = stage_runs(f.graph(), p, s);
      t.row({std::to_string(s), c.title(peer), c.sites[std::size_t(m.site)].name, in_ms(forward), in_ms(backward),
             decimal(use->busy, (std::max)(r.step, nanoseconds(1)), 2), decimal(i64(use->memory.total()), i64(1) << 30, 3),
             std::to_string(use->memory.slots), std::to_string(operators), runs.front()});
      for (std::size_t k = 1; k < runs.size(); ++k) t.row({"", "", "", "", "", "", "", "", "", runs[k]});
    }
  return t.text();
}

inline std::string link_table(const step_profile& f, const plan& p, const replay_result& r) {
  const cost_model& costs = *f.problem().costs;
  text_table t({"link", ">Mbit/s", ">latency ms", ">messages", ">raw kB", ">sent kB", ">ratio", ">busy s", ">busy", "codec"});
  for (const link_use& l : r.links) {
    const path& x = costs.link(l.from, l.to);
    const link_codec c = codec_of_link(p, l.from, l.to);
    std::string codec = c.codec;
    if (c.codec != "none") codec += " " + decimal(i64(c.ratio * 1000 + 0.5), 1000, 1);
    t.row({std::to_string(l.from) + " -> " + std::to_string(l.to), decimal(i64(x.bytes_per_second) * 8, 1'000'000, 1),
           in_ms(x.latency), std::to_string(l.messages), in_kb(l.raw_bytes), in_kb(l.bytes),
           decimal(i64(l.raw_bytes), i64((std::max)(l.bytes, u64(1))), 2), decimal(l.busy, second, 3),
           decimal(l.busy, (std::max)(r.step, nanoseconds(1)), 2), codec});
  }
  return t.empty() ? "" : t.text();
}

}  // namespace detail

/// Everything about a plan that was replayed for this problem, ready to print. Times of stages are those of one
/// micro-batch, of links those of a step.
inline std::string describe(const planning_problem& problem, const plan& p, const replay_result& r) {
  const step_profile f(problem);
  const step_bound bound = lower_bound(f, p);
  std::string out = "plan by " + (p.scheduler.empty() ? std::string("hand") : p.scheduler) + ": " +
                    std::to_string(p.stages()) + (p.stages() == 1 ? " stage, " : " stages, ") +
                    std::to_string(p.micro_batches) + " micro-batches of " + std::to_string(problem.micro_batch.batch) +
                    " x " + std::to_string(problem.micro_batch.time) + " in " + std::to_string(p.groups) +
                    (p.groups == 1 ? " group, " : " groups, ") + name_of(p.schedule) + "\n\n";
  out += detail::stage_table(f, p, r);
  const std::string links = detail::link_table(f, p, r);
  if (!links.empty()) out += "\n" + links;
  u64 raw = 0, sent = 0;
  for (const link_use& l : r.links) {
    raw += l.raw_bytes;
    sent += l.bytes;
  }
  const i64 tokens = tokens_in(problem.graph, problem.micro_batch) * p.micro_batches;
  out += "\npredicted step " + detail::decimal(r.step, second, 3) + " s (no schedule of it beats " +
         detail::decimal(bound.step(), second, 3) + " s), " +
         detail::decimal(tokens * second / (std::max)(r.step / 10, nanoseconds(1)), 10, 1) +
         ' ' + name_of_tokens(problem.graph) + "/s, sent " + detail::in_kb(sent) + " kB for " + detail::in_kb(raw) + " kB\n";
  for (const std::string& n : p.notes) out += "note: " + n + "\n";
  return out;
}

}  // namespace fusionllm::inline v0
