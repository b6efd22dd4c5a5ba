// SPDX-License-Identifier: Apache-2.0
// The chain of all allowed cuts of a problem: what the partition core is asked for any order of teams, and its answer
// as a plan.
#pragma once

#include "chain_plan.hpp"
#include "hops.hpp"
#include "partition.hpp"

namespace fusionllm::inline v0 {

class chain {
 public:
  /// Beyond `most` cuts, those that carry more than a neighbour are left out, unless too few would remain.
  explicit chain(const step_profile& f, std::size_t most = 192)
      : f_(f), positions_(allowed_cuts(f, most)), hops_(f, positions_) {
    add_memory();
    find_cheapest();
    for (int peer = 0; peer < f.problem().peers(); ++peer) add_load(peer);
  }
  chain(const chain&) = delete;
  chain& operator=(const chain&) = delete;

  /// Positions of the topological order where the chain may be cut, from 0 to the number of operators.
  const std::vector<int>& positions() const { return positions_; }
  const step_profile& profile() const { return f_; }

  /// What the partition core is asked about these teams in this order.
  partition_problem problem_of(const std::vector<peer_team>& teams) {
    const std::size_t n = teams.size(), cuts = positions_.size();
    partition_problem p;
    p.cuts = int(cuts);
    p.devices = int(n);
    p.fixed_bytes = fixed_;
    p.slot_bytes = kept_;
    for (const peer_team& t : teams) {
      p.share.push_back(int(t.size()));
      i64 room = never;
      std::vector<i64> load(cuts);
      for (int peer : t) {
        room = (std::min)(room, i64((std::min)(machine_of(peer).memory_bytes, u64(never))));
        for (std::size_t c = 0; c < cuts; ++c) load[c] = (std::max)(load[c], load_[std::size_t(peer) * cuts + c]);
      }
      p.room.push_back(room);
      p.load.insert(p.load.end(), load.begin(), load.end());
    }
    p.hop.assign(n * n, 0);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b)
        if (a != b) p.hop[a * n + b] = slowest_hop(teams[a], teams[b]);
    p.hop_busy = hops_.all_busy();
    p.hop_span = hops_.all_spans();
    p.kind = kinds_of(p);
    p.slots = most_slots(p.devices);
    return p;
  }

  /// Micro-batches in flight that a chain of so many stages may have to hold.
  int most_slots(int stages) const {
    const planning_problem& q = f_.problem();
    return q.schedule == schedule_kind::gpipe ? q.micro_batches : (std::min)(q.micro_batches, 2 * stages - 1);
  }

  plan plan_of(const partition& x, const std::vector<peer_team>& teams) const {
    std::vector<peer_team> used;
    std::vector<int> begin;
    for (int d : x.device) used.push_back(teams[std::size_t(d)]);
    for (int c : x.begin) begin.push_back(positions_[std::size_t(c)]);
    return chain_plan(f_, std::move(used), begin);
  }

  /// The hop of the cut that costs least among those that carry anything.
  nanoseconds cheapest_span(int from, int to) { return hops_.span(hops_.of(from, to), cheapest_); }
  nanoseconds cheapest_busy(int from, int to) { return hops_.busy(hops_.of(from, to), cheapest_); }
  /// All operators of one micro-batch on one peer.
  nanoseconds whole_load(int peer) const { return load_[std::size_t(peer + 1) * positions_.size() - 1]; }

 private:
  const machine& machine_of(int peer) const { return f_.problem().costs->machines().peers[std::size_t(peer)]; }

  static u64 raw_bytes(const step_profile& f, int position) {
    u64 n = 0;
    for (int i : f.crossing(position)) n += f.cost(i).output_bytes;
    return n;
  }

  static std::vector<int> allowed_cuts(const step_profile& f, std::size_t most) {
    std::vector<int> all, thin;
    const int n = int(f.order().size());
    for (int p = 0; p <= n; ++p)
      if (p == 0 || p == n || f.legal_cut(p)) all.push_back(p);
    if (all.size() <= most) return all;
    for (std::size_t c = 0; c < all.size(); ++c) {
      bool least = true;
      for (std::size_t o = c < 2 ? 0 : c - 2; o < all.size() && o <= c + 2; ++o)
        least = least && raw_bytes(f, all[c]) <= raw_bytes(f, all[o]);
      if (least || c == 0 || c + 1 == all.size()) thin.push_back(all[c]);
    }
    return thin.size() > 3 * std::size_t(f.problem().peers()) ? thin : all;
  }

  // A parameter's optimizer state counts at its first use; a copy at every use.
  void add_memory() {
    u64 fixed = 0, kept = 0;
    flags counted(f_.graph().params.size(), u8(0));
    const parameter_memory& memory = f_.problem().memory;
    std::size_t c = 0;
    for (int p = 0; p <= int(f_.order().size()); ++p) {
      if (c < positions_.size() && positions_[c] == p) {
        fixed_.push_back(i64(fixed));
        kept_.push_back(i64(kept));
        ++c;
      }
      if (p == int(f_.order().size())) break;
      const int i = f_.order()[std::size_t(p)];
      kept += f_.kept_bytes(i);
      for (int q : f_.graph().nodes[std::size_t(i)].params)
        if (q >= 0) {
          const u64 each = memory.copy + (counted[std::size_t(q)] ? 0 : memory.primary);
          fixed += f_.graph().params[std::size_t(q)].count() * each;
          counted[std::size_t(q)] = 1;
        }
    }
  }

  void add_load(int peer) {
    i64 sum = 0;
    int k = 0;
    for (int p : positions_) {
      for (; k < p; ++k) sum = (std::min)(never / 4, sum + f_.both(peer, f_.order()[std::size_t(k)]));
      load_.push_back(sum);
    }
  }

  void find_cheapest() {
    u64 least = ~u64(0);
    for (std::size_t c = 1; c + 1 < positions_.size(); ++c) {
      const u64 bytes = raw_bytes(f_, positions_[c]);
      if (bytes != 0 && bytes < least) {
        least = bytes;
        cheapest_ = c;
      }
    }
  }

  int slowest_hop(const peer_team& a, const peer_team& b) {
    int worst = -1;
    for (std::size_t i = 0; i < (std::max)(a.size(), b.size()); ++i) {
      const int h = hops_.of(a[i * a.size() / (std::max)(a.size(), b.size())], b[i * b.size() / (std::max)(a.size(), b.size())]);
      if (worst < 0 || hops_.span(h, cheapest_) > hops_.span(worst, cheapest_)) worst = h;
    }
    return worst;
  }

  // Teams of one kind share, hop to others, and are reached, alike.
  static std::vector<int> kinds_of(const partition_problem& p) {
    const std::size_t n = std::size_t(p.devices);
    std::vector<int> kind(n, -1);
    int kinds = 0;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < a && kind[a] < 0; ++b) {
        bool same = p.share[a] == p.share[b] && p.hop[a * n + b] == p.hop[b * n + a];
        for (std::size_t c = 0; same && c < n; ++c)
          if (c != a && c != b) same = p.hop[a * n + c] == p.hop[b * n + c] && p.hop[c * n + a] == p.hop[c * n + b];
        if (same) kind[a] = kind[b];
      }
      if (kind[a] < 0) kind[a] = kinds++;
    }
    return kind;
  }

  const step_profile& f_;
  std::vector<int> positions_;
  hop_table hops_;
  std::vector<i64> fixed_, kept_;  ///< [cut]
  std::vector<i64> load_;          ///< [peer][cut]
  std::size_t cheapest_ = 0;
};

}  // namespace fusionllm::inline v0
