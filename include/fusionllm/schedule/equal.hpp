// SPDX-License-Identifier: Apache-2.0
// The baselines that look at operators only: peers in the order of the topology, as many operators, or as much
// computing time, for each. Neither looks at links, except that a peer which the one before it cannot reach is passed over.
#pragma once

#include "best_single.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline std::vector<peer_team> peers_in_turn(const planning_problem& problem, std::vector<std::string>& notes) {
  std::vector<peer_team> r;
  for (int i = 0; i < problem.peers(); ++i) {
    const int before = r.empty() ? i : r.back().front();
    if (problem.costs->reachable(before, i) && problem.costs->reachable(i, before)) r.push_back({i});
    else notes.push_back("passed over peer " + problem.costs->machines().title(i) + ": peer " +
                         problem.costs->machines().title(before) + " cannot reach it");
  }
  return r;
}

/// Cuts at the allowed positions where the sum of work before them is nearest to each wish; teams for which no operator
/// is left go without.
inline plan cut_near(const step_profile& f, std::vector<peer_team> teams, const std::vector<u64>& work,
                     const std::vector<u64>& wishes, std::string_view name, std::vector<std::string> notes) {
  const auto far = [](u64 a, u64 b) { return a > b ? a - b : b - a; };
  std::vector<int> begin{0};
  std::vector<peer_team> used{teams.front()};
  for (std::size_t s = 0; s < wishes.size(); ++s) {
    int cut = -1;
    for (int p = begin.back() + 1; p < int(f.order().size()); ++p)
      if (f.legal_cut(p) && (cut < 0 || far(work[std::size_t(p)], wishes[s]) < far(work[std::size_t(cut)], wishes[s]))) cut = p;
    if (cut < 0) break;
    begin.push_back(cut);
    used.push_back(teams[s + 1]);
  }
  if (used.size() < teams.size())
    notes.push_back("there are operators for " + std::to_string(used.size()) + " peers only");
  begin.push_back(int(f.order().size()));
  plan p = chain_plan(f, std::move(used), begin);
  p.predicted_step = predict_step(f, p);
  p.scheduler = name;
  p.notes = std::move(notes);
  return p;
}

}  // namespace detail

struct equal_number {
  using seat = scheduler_seat;
  static constexpr std::string_view name = "equal_number";

  /// Errors: errc::plan when the plan cannot run: memory, or peers that cannot reach each other.
  plan operator()(const planning_problem& problem) const {
    const step_profile f(problem);
    std::vector<std::string> notes;
    std::vector<peer_team> teams = detail::peers_in_turn(problem, notes);
    if (teams.size() > f.order().size()) teams.resize(f.order().size());
    std::vector<u64> work, wishes;
    for (std::size_t p = 0; p <= f.order().size(); ++p) work.push_back(p);
    for (std::size_t s = 1; s < teams.size(); ++s) wishes.push_back(work.back() * s / teams.size());
    return detail::cut_near(f, std::move(teams), work, wishes, name, std::move(notes));
  }
};

struct equal_compute {
  using seat = scheduler_seat;
  static constexpr std::string_view name = "equal_compute";

  /// Every device computes for about as long as the others. Errors: as for equal_number.
  plan operator()(const planning_problem& problem) const {
    const step_profile f(problem);
    std::vector<std::string> notes;
    std::vector<peer_team> teams = detail::peers_in_turn(problem, notes);
    std::vector<u64> work{0}, speed{0};  // sums: of operators' times on the first peer; of peers' speeds
    for (int i : f.order()) work.push_back(work.back() + u64(f.both(0, i)));
    for (const peer_team& t : teams) {
      nanoseconds whole = 1;
      for (int i : f.order()) whole = plus(whole, f.both(t.front(), i));
      speed.push_back(speed.back() + (u64(1) << 50) / u64(whole) + 1);
    }
    std::vector<u64> wishes;
    for (std::size_t s = 1; s < teams.size(); ++s) wishes.push_back(u64(scaled(work.back(), speed[s], speed.back())));
    return detail::cut_near(f, std::move(teams), work, wishes, name, std::move(notes));
  }
};

}  // namespace fusionllm::inline v0
