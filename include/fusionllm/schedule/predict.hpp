// SPDX-License-Identifier: Apache-2.0
// Whether a plan can run on the machines, and how long a step of it takes.
#pragma once

#include "memory.hpp"
#include "step_replay.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline std::string gib(u64 bytes) {
  const u64 hundredths = (bytes * 100 + (u64(1) << 29)) >> 30;
  if (hundredths == 0) return std::to_string(bytes) + " bytes";
  std::string digits = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (digits.size() < 2 ? "0" : "") + digits + " GiB";
}

}  // namespace detail

/// Why a checked plan cannot run: too little memory, or peers that have to talk and cannot. Empty when it can.
inline std::string obstacle(const step_profile& f, const plan& p, const program& prog) {
  const cost_model& costs = *f.problem().costs;
  const cluster& c = costs.machines();
  const auto need = memory_of(f, p, prog);
  for (int i = 0; i < c.size(); ++i)
    if (need[std::size_t(i)].total() > c.peers[std::size_t(i)].memory_bytes)
      return "peer " + c.title(i) + " would need " + detail::gib(need[std::size_t(i)].total()) + " of memory, it has "
             + detail::gib(c.peers[std::size_t(i)].memory_bytes);
  std::string r;
  const auto talk = [&](int from, int to, const char* about) {
    if (r.empty() && !costs.reachable(from, to))
      r = "peer " + c.title(from) + " cannot reach peer " + c.title(to) + " to send it " + about;
  };
  for (const edge& e : prog.edges)
    for (int m = 0; m < p.micro_batches; ++m) talk(p.peer_of(e.from, m), p.peer_of(e.to, m), "tensors");
  for (const parameter_owners& o : owners_of(f.graph(), p)) {
    for (int h : o.holders) talk(o.primary, h, "parameters");
    if (o.holders.size() < 2) continue;
    for (int s : o.stages) {
      const auto& peers = p.peers[std::size_t(s)];
      for (std::size_t k = 0; k + 1 < peers.size(); ++k) talk(peers[k], peers[k + 1], "gradients");
      talk(peers.back(), o.primary, "gradients");
    }
  }
  const int leader = f.graph().loss >= 0 ? leader_of(f.graph(), p) : p.peers.back().front();
  for (const auto& peers : p.peers)
    for (int peer : peers) {
      talk(peer, leader, "its loss and gradient norm");
      talk(leader, peer, "how to update");
    }
  return r;
}

/// Nanoseconds of one step. Errors: errc::plan with the obstacle when there is one.
inline nanoseconds predict_step(const step_profile& f, const plan& p) {
  const program prog = compile(f.graph(), p);
  const std::string why = obstacle(f, p, prog);
  if (!why.empty()) fail(errc::plan, why, ": use another plan, or other machines");
  no_record nothing;
  step_replay<> replay(f, p, prog, nothing);
  const nanoseconds end = replay.run();
  if (!replay.finished()) fail(errc::internal, "the replay of a plan stopped before its end");
  return end;
}

/// The same for a plan that was not made for this problem, which is checked first.
inline nanoseconds predict_step(const planning_problem& problem, const plan& p) {
  check(p, problem.graph, problem.peers());
  const step_profile f(problem);
  return predict_step(f, p);
}

}  // namespace fusionllm::inline v0
