// SPDX-License-Identifier: Apache-2.0
// OP-Fence, after FusionLLM: slow links become fences that the model's graph crosses seldom and where it is thin.
//   1. Peers are grouped by similar bandwidth (Louvain and every single-linkage threshold; up to 5 peers: not needed).
//   2. Each grouping gives an order of peers that crosses the slow links once.
//   3. The chain of operators is cut for that order by the partition core, within memory, with the codecs' sizes, with
//      teams of replicas where the problem allows them, and leaving out peers that only slow it down.
//   4. For a parameter used at both ends (a tied embedding) also with both ends on one peer.
//   5. A step of every candidate is replayed; the fastest is improved by moving single cuts.
// The best single device is a candidate like any other, and the notes say how it compares. Who wants more peers than
// are worth it says so in `least_peers`.
#pragma once

#include <set>

#include "best_single.hpp"
#include "chain.hpp"
#include "judge.hpp"
#include "peer_order.hpp"
#include "scheduler.hpp"

namespace fusionllm::inline v0 {

namespace detail {

class fence_search {
 public:
  fence_search(const step_profile& f, int least_peers)
      : f_(f), chain_(f), least_peers_(least_peers), judge_(f, (std::max)(2, least_peers)), small_(f.problem().peers() <= 5) {}

  /// The fastest plan over several peers, if any can run.
  const plan_judge& run() {
    for (const peer_order& o : candidate_orders(chain_)) {
      if (least_peers_ > 1) without_choice(o);
      for (int replicas : team_sizes()) attempt(teams_of(o, replicas), -1, false);
    }
    if (!ends_.empty() || find_ends()) fold();
    refine();
    return judge_;
  }

 private:
  struct shape {
    std::vector<peer_team> teams;  ///< used ones, in chain order
    std::vector<int> begin;        ///< cuts; the last one is the tail of a fold or the end
  };
  /// A candidate that could run, and the teams among which it was chosen.
  struct trial {
    nanoseconds step;
    std::vector<peer_team> teams;
    shape form;
  };

  std::vector<int> team_sizes() const {
    std::vector<int> r{1};
    if (f_.problem().replicas)
      for (int n = 2; n <= f_.problem().groups && n <= f_.problem().peers(); ++n)
        if (f_.problem().groups % n == 0) r.push_back(n);
    return r;
  }

  // Neighbours of one site in the order become teams of so many; what is left over stays alone.
  std::vector<peer_team> teams_of(const peer_order& o, int replicas) const {
    const cluster& c = f_.problem().costs->machines();
    std::vector<peer_team> r;
    for (std::size_t i = 0; i < o.size();) {
      std::size_t j = i;
      while (j < o.size() && j - i < std::size_t(replicas) && c.same_site(o[i], o[j])) ++j;
      if (j - i == std::size_t(replicas)) {
        r.emplace_back(o.begin() + std::ptrdiff_t(i), o.begin() + std::ptrdiff_t(j));
        i = j;
      } else {
        r.push_back({o[i++]});
      }
    }
    return r;
  }

  // With as few peers as are demanded: the first ones of the order, and the fastest ones in this order; none left out.
  void without_choice(const peer_order& o) {
    const auto take = [&](const peer_order& some) { attempt(teams_of(some, 1), -1, true); };
    const std::size_t n = std::size_t(least_peers_);
    take(peer_order(o.begin(), o.begin() + std::ptrdiff_t(n)));
    peer_order fastest = o, kept;
    std::stable_sort(fastest.begin(), fastest.end(),
                     [&](int a, int b) { return chain_.whole_load(a) < chain_.whole_load(b); });
    fastest.resize(n);
    for (int peer : o)
      if (std::find(fastest.begin(), fastest.end(), peer) != fastest.end()) kept.push_back(peer);
    take(kept);
  }

  // Solves one chain of teams. Memory is first asked for the slots of the longest pipeline, then for those of shorter
  // ones; the replay has the last word.
  void attempt(const std::vector<peer_team>& teams, int tail, bool all) {
    if (!tried_.insert({teams, {tail, int(all)}}).second) return;
    partition_problem p = chain_.problem_of(teams);
    p.tail = tail;
    p.all = all;
    p.several = true;
    for (int stages = p.devices; stages >= 1; stages = stages / 2) {
      p.slots = chain_.most_slots(stages + (tail >= 0));
      const partition x = best_partition(p, f_.problem().micro_batches);
      if (x.found) {
        if (consider({used_teams(x, teams), x.begin}, teams) < never) return;
      }
      if (stages == 1) return;
    }
  }
  static std::vector<peer_team> used_teams(const partition& x, const std::vector<peer_team>& teams) {
    std::vector<peer_team> r;
    for (int d : x.device) r.push_back(teams[std::size_t(d)]);
    return r;
  }

  nanoseconds step_of(const shape& s) {
    std::vector<int> begin;
    for (int c : s.begin) begin.push_back(chain_.positions()[std::size_t(c)]);
    judge_.consider(chain_plan(f_, s.teams, begin));
    return judge_.last();
  }
  nanoseconds consider(const shape& s, const std::vector<peer_team>& teams) {
    const nanoseconds step = step_of(s);
    if (step < never) trials_.push_back({step, teams, s});
    return step;
  }
  /// The best so far, no two of the same form.
  std::vector<trial> best_trials(std::size_t most) {
    std::stable_sort(trials_.begin(), trials_.end(), [](const trial& a, const trial& b) { return a.step < b.step; });
    std::vector<trial> r;
    for (const trial& t : trials_) {
      if (r.size() == most) break;
      if (small_ || r.empty() || r.back().form.teams != t.form.teams || r.back().form.begin != t.form.begin) r.push_back(t);
    }
    return r;
  }

  // Cuts from which on the last operators may join the first ones: before the last use of the largest parameter that is
  // used in several places, and some before that.
  bool find_ends() {
    const auto uses = parameter_uses(f_.graph());
    int last = -1;
    u64 largest = 0;
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i].size() > 1 && uses[i].front().node != uses[i].back().node && f_.graph().params[i].count() > largest) {
        largest = f_.graph().params[i].count();
        last = uses[i].back().node;
      }
    if (last < 0) return false;
    int tail = -1;
    for (std::size_t c = 0; c < chain_.positions().size(); ++c) {
      const std::size_t p = std::size_t(chain_.positions()[c]);
      if (p < f_.order().size() && f_.order()[p] <= last) tail = int(c);
    }
    const int stride = small_ ? 1 : (std::max)(1, int(chain_.positions().size()) / (2 * f_.problem().peers()));
    for (int k = 0; k < (small_ ? 12 : 3) && tail - k * stride > int(chain_.positions().size()) / 2; ++k)
      ends_.push_back(tail - k * stride);
    return !ends_.empty();
  }

  // The best orders so far, begun anew at each of a few peers, with both ends of the model there.
  void fold() {
    for (const trial& t : best_trials(small_ ? 60 : 3)) {
      const std::size_t turns = small_ ? 1 : 4;
      for (std::size_t k = 0; k < turns; ++k) {
        std::vector<peer_team> teams = t.teams;
        std::rotate(teams.begin(), teams.begin() + std::ptrdiff_t(k * teams.size() / turns), teams.end());
        for (int tail : ends_) attempt(teams, tail, least_peers_ > 1 && int(teams.size()) == least_peers_);
      }
    }
  }

  // From a few of the best: moves one cut at a time as long as that helps, within a budget of replayed tasks.
  void refine() {
    const std::size_t before = judge_.replayed_tasks();
    for (const trial& t : best_trials(small_ ? 8 : 2)) {
      shape now = t.form;
      nanoseconds shortest = t.step;
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t k = 1; k < now.begin.size(); ++k)
          for (int by : {-2, -1, 1, 2}) {
            shape s = now;
            s.begin[k] += by;
            if (!is_chain(s, now.begin.back() + 1 < int(chain_.positions().size()))) continue;
            if (judge_.replayed_tasks() - before > 400'000) return;
            const nanoseconds step = step_of(s);
            if (step >= shortest) continue;
            shortest = step;
            now = s;
            moved = true;
          }
      }
    }
  }
  bool is_chain(const shape& s, bool folded) const {
    for (std::size_t k = 0; k + 1 < s.begin.size(); ++k)
      if (s.begin[k] >= s.begin[k + 1]) return false;
    const int end = int(chain_.positions().size()) - 1;
    return folded ? s.begin.back() < end : s.begin.back() == end;
  }

  const step_profile& f_;
  chain chain_;
  int least_peers_;
  plan_judge judge_;
  bool small_;
  std::vector<int> ends_;  ///< cuts where a fold's tail may begin
  std::vector<trial> trials_;
  std::set<std::pair<std::vector<peer_team>, std::pair<int, int>>> tried_;
};

/// "1.234 s", "56.7 ms"; for messages.
inline std::string readable(nanoseconds t) {
  const auto digits = [](i64 thousandths, const char* unit) {
    std::string rest = std::to_string(thousandths % 1000);
    return std::to_string(thousandths / 1000) + "." + std::string(3 - rest.size(), '0') + rest + " " + unit;
  };
  return t >= second ? digits(t / millisecond, "s") : t >= millisecond ? digits(t / microsecond, "ms") : digits(t, "us");
}

}  // namespace detail

struct op_fence {
  using seat = scheduler_seat;
  static constexpr std::string_view name = "op_fence";

  /// Errors: errc::plan when nothing can run, with the reasons.
  plan operator()(const planning_problem& problem) const {
    const step_profile f(problem);
    plan_judge single(f);
    detail::consider_singles(f, single);
    if (problem.peers() == 1 && single.found()) return one(f, single, nullptr);
    detail::fence_search search(f, problem.least_peers);
    const plan_judge& several = search.run();
    const bool alone_allowed = problem.least_peers <= 1 && single.found();
    if (!several.found() && !alone_allowed) give_up(f, single, several);
    if (!several.found() || (alone_allowed && single.best().predicted_step <= several.best().predicted_step))
      return one(f, single, &several);
    plan r = several.best();
    r.scheduler = name;
    if (!single.found()) r.notes.push_back("no single device can train the model: " + single.first_obstacle());
    else compare(f, single.best(), r);
    const int used = peers_used(r);
    if (used < problem.peers())
      r.notes.push_back(std::to_string(used) + " of " + std::to_string(problem.peers()) +
                        " peers have a stage: the others would make a step no shorter");
    return r;
  }

 private:
  static std::string title(const step_profile& f, const plan& p) {
    return f.problem().costs->machines().title(p.peers.front().front());
  }

  static plan one(const step_profile& f, const plan_judge& single, const plan_judge* several) {
    plan r = single.best();
    r.scheduler = name;
    if (several && several->found())
      r.notes.push_back("peer " + title(f, r) + " alone is fastest: the best plan over several peers takes " +
                        detail::readable(several->best().predicted_step) + " a step instead of " +
                        detail::readable(r.predicted_step) + "; ask for more peers to get it");
    else if (several)
      r.notes.push_back("peer " + title(f, r) + " alone: no plan over several peers can run" +
                        (several->first_obstacle().empty() ? "" : " (" + several->first_obstacle() + ")"));
    return r;
  }

  static void compare(const step_profile& f, const plan& single, plan& r) {
    const bool alone = single.predicted_step < r.predicted_step;
    r.notes.push_back("the best single device, peer " + title(f, single) + ", takes " + detail::readable(single.predicted_step) +
                      " a step" + (alone ? ": that device alone would be faster" : ""));
  }

  [[noreturn]] static void give_up(const step_profile& f, const plan_judge& single, const plan_judge& several) {
    const planning_problem& q = f.problem();
    u64 need = 0, have = 0;
    for (const parameter_info& p : f.graph().params) need += p.count() * (q.memory.copy + q.memory.primary);
    for (const machine& m : q.costs->machines().peers) have += m.memory_bytes;
    std::string why;
    if (need > have)
      why = "parameters and optimizer need " + detail::gib(need) + ", all peers together have " + detail::gib(have);
    else if (!single.found()) why = single.first_obstacle();
    if (!several.first_obstacle().empty()) why += (why.empty() ? "" : "; over several peers, ") + several.first_obstacle();
    else if (q.least_peers > 1)
      why += (why.empty() ? "" : "; ") + std::string("no chain of ") + std::to_string(q.least_peers) + " or more peers has the operators, links and memory";
    else if (q.peers() > 1) why += "; no chain of several peers has the links and memory either";
    fail(errc::plan, "no plan can run: ", why, ": add memory, peers or links, or make micro-batches smaller");
  }
};

}  // namespace fusionllm::inline v0
