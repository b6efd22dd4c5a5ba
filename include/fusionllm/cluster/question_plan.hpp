// SPDX-License-Identifier: Apache-2.0
// What the assignment says of outputs that are to be asked about, on both of its ends.
#pragma once

#include "../runtime/forward_stage.hpp"
#include "planning.hpp"

namespace fusionllm::inline v0 {

inline constexpr int widest_window = 64;

/// The outputs of a run with as many questions at once as keep its stages busy.
inline std::vector<forward_output> with_windows(std::vector<forward_output> outputs, const plan& p) {
  for (forward_output& o : outputs) o.window = o.kind == inference_kind::decoding ? 1 : (std::min)(p.stages() + 1, 8);
  return outputs;
}

/// For `peer`; emulated devices are held as `problem`'s costs say.
inline output_message to_message(const forward_output& o, const planning_problem& problem, const plan& p, int peer, bool emulate) {
  output_message m{u32(o.node), o.kind == inference_kind::decoding, u32(o.window), u64(o.bounds.batch), u64(o.bounds.time), {}};
  if (!emulate) return m;
  planning_problem one = problem;
  one.micro_batch = o.bounds;
  const step_profile profile(one);
  for (const task& t : forward_program(problem.graph, p, o.node).tasks) {
    m.holds.push_back(0);
    if (t.stage == p.stage_of_peer(peer))
      for (int n : t.nodes) m.holds.back() += profile.time(peer, n, direction::forward);
  }
  return m;
}

/// Errors: protocol, model.
inline forward_options forward_options_of(const assignment& a, const graph_view& g, const plan& p, int rank, std::vector<std::string> names) {
  forward_options r;
  r.self = rank;
  r.names = std::move(names);
  r.epoch = a.epoch;
  constexpr u64 most = 1 << 24;
  for (const output_message& m : a.outputs) {
    const bool sane = m.node < g.nodes.size() && m.decoding <= 1 && m.window >= 1 && m.window <= u32(m.decoding ? 1 : widest_window) && m.batch >= 1 &&
                      m.batch <= most && m.time >= 1 && m.time <= most && a.outputs.size() <= 16;
    if (!sane)
      fail(errc::protocol, "the broker wants answers about node ", m.node, " for ", m.window, " questions of ", m.batch, " rows of ", m.time,
           " at once, one of ", a.outputs.size(), " outputs");
    r.outputs.push_back({int(m.node), m.decoding ? inference_kind::decoding : inference_kind::whole, {i64(m.batch), i64(m.time)}, int(m.window)});
    r.holds.emplace_back(m.holds.begin(), m.holds.end());
    const std::size_t tasks = forward_program(g, p, int(m.node)).tasks.size();
    if (m.holds.size() != (m.holds.empty() ? 0 : tasks)) fail(errc::protocol, "the broker holds ", m.holds.size(), " tasks, the output has ", tasks);
  }
  if (std::all_of(r.holds.begin(), r.holds.end(), [](const auto& h) { return h.empty(); })) r.holds.clear();
  else
    for (const auto& h : r.holds)
      if (h.empty()) fail(errc::protocol, "the broker holds tasks of some outputs and not of others");
  return r;
}

/// Where a peer that answers questions wants weights that the broker sends. Errors: protocol, for what it does not want.
inline byte_span weights_memory(forward_weights* weights, std::size_t parameters, const frame_header& h) {
  if (!weights || h.edge >= parameters || h.micro_batch != 0 || !weights->held(int(h.edge)) || weights->of(int(h.edge)).size() != h.total_length)
    fail(errc::protocol, "the broker sends ", h.total_length, " bytes of part ", h.micro_batch, " of parameter ", h.edge,
         ", which this peer does not hold or does not expect now");
  return weights->of(int(h.edge));
}

}  // namespace fusionllm::inline v0
