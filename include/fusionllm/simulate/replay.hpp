// SPDX-License-Identifier: Apache-2.0
// What one step of a plan does, on the cost model: when each peer computes what, when each message travels, and what
// that adds up to. The events are those by which schedulers judge plans (schedule/step_replay.hpp), here recorded.
#pragma once

#include "../schedule/predict.hpp"

namespace fusionllm::inline v0 {

struct peer_use {
  int peer = -1;
  int stage = -1;
  nanoseconds busy = 0;  ///< computing
  memory_need memory;
};

/// All messages of one directed link in a step.
struct link_use {
  int from = -1;
  int to = -1;
  u64 messages = 0;
  u64 raw_bytes = 0;
  u64 bytes = 0;         ///< on the wire
  nanoseconds busy = 0;
  u64 tensor_bytes = 0;  ///< of `bytes`, activations and cotangents; the rest belongs to the update
};

struct replay_result {
  nanoseconds step = 0;
  std::vector<peer_use> peers;           ///< of the plan, by peer
  std::vector<link_use> links;           ///< that carried something, by (from, to)
  std::vector<compute_record> computes;  ///< in order of their starts
  std::vector<message_record> messages;  ///< in the order in which their last bytes were sent
  program prog;                          ///< what `task` and `subject` in the records count in
};

namespace detail {

struct step_recorder {
  replay_result& r;
  void operator()(const compute_record& c) { r.computes.push_back(c); }
  void operator()(const message_record& m) { r.messages.push_back(m); }
};

inline void add_up(replay_result& r, const plan& p, const std::vector<memory_need>& need) {
  for (std::size_t peer = 0; peer < need.size(); ++peer)
    if (const int s = p.stage_of_peer(int(peer)); s >= 0) r.peers.push_back({int(peer), s, 0, need[peer]});
  for (const compute_record& c : r.computes)
    for (peer_use& u : r.peers)
      if (u.peer == c.peer) u.busy += c.end - c.start;
  for (const message_record& m : r.messages) {
    auto l = std::find_if(r.links.begin(), r.links.end(), [&](const link_use& u) { return u.from == m.from && u.to == m.to; });
    if (l == r.links.end()) {
      r.links.emplace_back();
      l = r.links.end() - 1;
      l->from = m.from;
      l->to = m.to;
    }
    ++l->messages;
    l->raw_bytes += m.raw_bytes;
    l->bytes += m.bytes;
    l->busy += m.busy;
    if (m.kind == message_kind::activation || m.kind == message_kind::cotangent) l->tensor_bytes += m.bytes;
  }
  std::sort(r.links.begin(), r.links.end(),
            [](const link_use& a, const link_use& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
}

}  // namespace detail

/// Errors: errc::plan for a plan that does not fit the problem or cannot run on its machines.
inline replay_result replay(const planning_problem& problem, const plan& p) {
  check(problem);
  check(p, problem.graph, problem.peers());
  const step_profile f(problem);
  replay_result r;
  r.prog = compile(problem.graph, p);
  const std::string why = obstacle(f, p, r.prog);
  if (!why.empty()) fail(errc::plan, why, ": use another plan, or other machines");
  detail::step_recorder recorder{r};
  step_replay<detail::step_recorder> events(f, p, r.prog, recorder);
  r.step = events.run();
  detail::add_up(r, p, memory_of(f, p, r.prog));
  return r;
}

}  // namespace fusionllm::inline v0
