// SPDX-License-Identifier: Apache-2.0
// `plan` and `simulate`: what would run where on the machines of a topology, and how long a step would take. Neither
// trains, and neither touches a network.
#pragma once

#include "../simulate/table.hpp"
#include "broker.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// The settings of a run on all machines of the topology, unless `peers` says fewer.
inline cluster_settings planning_settings_of(const command_call& call) {
  if (call.config.topology.empty()) fail(errc::usage, "no topology: name its file with --topology");
  cluster_settings s = full_settings_of(call);
  const int machines = s.machines->size();
  if (machines < s.peers) fail(errc::config, "peers is ", s.peers, ", the topology '", call.config.topology, "' has ", machines, " devices");
  s.machines->peers.resize(std::size_t(s.peers));
  return s;
}

inline cost_model costs_of(const command_call& call, const cluster_settings& s) {
  cluster c = *s.machines;
  const cluster all = expand(load_topology(call.config.topology));
  c.paths.clear();
  for (int a = 0; a < c.size(); ++a)
    for (int b = 0; b < c.size(); ++b) c.paths.push_back(all.between(a, b));
  return cost_model(std::move(c), call.model.encoded_bytes);
}

inline double milliseconds_of(nanoseconds t) { return double(t) / 1e6; }

inline void add_json(json_text& j, const planning_problem& problem, const plan& p) {
  const replay_result r = replay(problem, p);
  j.begin_object().field("scheduler", std::string_view(p.scheduler)).field("stages", p.stages());
  j.field("step_ms", milliseconds_of(r.step)).field("bound_ms", milliseconds_of(lower_bound(problem, p).step()));
  u64 raw = 0, sent = 0;
  for (const link_use& l : r.links) raw += l.raw_bytes, sent += l.bytes;
  j.field("raw_bytes", raw).field("sent_bytes", sent).key("notes").begin_array();
  for (const auto& n : p.notes) j.value(std::string_view(n));
  j.end_array().end_object();
}

}  // namespace detail

inline int plan_command(const command_call& call) {
  const cluster_settings s = detail::planning_settings_of(call);
  const cost_model costs = detail::costs_of(call, s);
  const planning_problem problem = problem_of(call.model, s, costs);
  const plan p = plan_run(call.model, s, costs);
  if (!call.options.output.empty()) detail::write_whole_file(call.options.output, write_plan(call.model.graph, p));
  if (call.options.json) {
    json_text j(2);
    detail::add_json(j, problem, p);
    std::fprintf(call.out, "%s\n", j.text().c_str());
  } else {
    std::fputs(describe(problem, p, replay(problem, p)).c_str(), call.out);
    if (!call.options.output.empty()) std::fprintf(call.out, "written to %s; run it with --use\n", call.options.output.c_str());
  }
  return 0;
}

inline int simulate_command(const command_call& call) {
  cluster_settings s = detail::planning_settings_of(call);
  const cost_model costs = detail::costs_of(call, s);
  const planning_problem problem = problem_of(call.model, s, costs);
  std::vector<std::string> names = call.model.schedulers;
  if (!call.config.scheduler.empty() || s.given_plan) names = {call.config.scheduler};
  text_table table({"scheduler", ">stages", ">step ms", ">bound ms", std::string(">") + name_of_tokens(call.model.graph) + "/s", "note"});
  json_text j(2);
  j.begin_array();
  for (const auto& name : names) {
    s.scheduler = name;
    try {
      const plan p = plan_run(call.model, s, costs);
      const nanoseconds step = predict_step(problem, p), bound = lower_bound(problem, p).step();
      detail::add_json(j, problem, p);
      char number[3][32];
      std::snprintf(number[0], 32, "%.2f", detail::milliseconds_of(step));
      std::snprintf(number[1], 32, "%.2f", detail::milliseconds_of(bound));
      std::snprintf(number[2], 32, "%.0f", double(tokens_in(call.model.graph, {s.batch, s.time})) / (double(step) / 1e9));
      table.row({p.scheduler, std::to_string(p.stages()), number[0], number[1], number[2], p.notes.empty() ? "" : p.notes[0]});
    } catch (const error& e) {
      if (e.code() != errc::plan || names.size() == 1) throw;
      j.begin_object().field("scheduler", std::string_view(name)).field("error", e.what()).end_object();
      table.row({name, "-", "-", "-", "-", e.what()});
    }
  }
  j.end_array();
  std::fprintf(call.out, "%s%s", call.options.json ? j.text().c_str() : table.text().c_str(), call.options.json ? "\n" : "");
  return 0;
}

}  // namespace fusionllm::inline v0
