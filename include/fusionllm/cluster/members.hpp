// SPDX-License-Identifier: Apache-2.0
// The peers of a run as their broker knows them: who may come in, who they are, how far each has come. A rank belongs to
// one connection; who leaves before the run has begun may come again.
#pragma once

#include <algorithm>

#include "links.hpp"
#include "settings.hpp"

namespace fusionllm::inline v0 {

struct member {
  connection* c = nullptr;  ///< null: it is not there
  std::string name;
  joining joined;
  bool has_joined = false, connected = false, has_measured = false, ready = false;
  u64 progress = 0;  ///< what its last heartbeat said
};

class members {
 public:
  explicit members(int count) : all_(std::size_t(count)) {}

  u32 size() const { return u32(all_.size()); }
  member& operator[](u64 rank) { return all_[std::size_t(rank)]; }
  const member& operator[](u64 rank) const { return all_[std::size_t(rank)]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  /// Why someone is not let in; empty to let it in.
  std::string refusal(const hello& remote, bool gathering) const {
    if (remote.role != "peer") return "this is a broker: peers connect to it, not a " + remote.role;
    if (remote.rank >= size()) return "rank " + std::to_string(remote.rank) + ", expected 0 to " + std::to_string(size() - 1);
    if (all_[remote.rank].c) return "rank " + std::to_string(remote.rank) + " is taken by '" + all_[remote.rank].name + "'";
    return gathering ? "" : "the run has begun without it";
  }
  void admit(connection& c) {
    member& m = all_[c.remote().rank];
    m.c = &c;
    m.name = c.remote().name;
    c.user = c.remote().rank;
  }
  /// Its connection is closed. False for one that was none of them.
  bool leaves(connection& c) {
    if (c.user >= size() || all_[std::size_t(c.user)].c != &c) return false;
    all_[std::size_t(c.user)].c = nullptr;
    return true;
  }

  /// Has everyone come so far?
  bool all(bool member::*what) const {
    return std::all_of(all_.begin(), all_.end(), [&](const member& m) { return m.*what; });
  }

  /// For messages.
  std::string title(u64 rank) const {
    const std::string& name = all_[std::size_t(rank)].name;
    return name.empty() ? "peer " + std::to_string(rank) : "'" + name + "'";
  }
  std::vector<std::string> titles() const {
    std::vector<std::string> t;
    for (u32 i = 0; i < size(); ++i) t.push_back(title(i));
    return t;
  }
  /// The titles of those ranks that `is` holds for.
  template <class Is>
  std::string titles_where(Is&& is) const {
    std::string who;
    for (u32 i = 0; i < size(); ++i)
      if (is(i)) who += (who.empty() ? "" : ", ") + title(i);
    return who;
  }

 private:
  std::vector<member> all_;
};

/// Takes up what a peer says of itself, whose build may have devices that the broker's has not. Errors: config, for one that
/// cannot work with the others; protocol.
inline void join(members& all, u32 rank, joining j) {
  const dtype real{u8(j.real)};
  if (j.real > u32(dtype::bf16)) fail(errc::protocol, "'", all[rank].name, "' computes in type ", j.real, ", which is none");
  for (const member& other : all)
    if (other.has_joined && other.joined.real != j.real)
      fail(errc::config, "'", all[rank].name, "' computes in ", name_of(real), ", '", other.name, "' in ", name_of(dtype{u8(other.joined.real)}),
           ": use devices of one precision");
  all[rank].joined = std::move(j);
  all[rank].has_joined = true;
}

/// Where those who take part do not compute alike: in what ways, and who. Empty where all do.
template <class TakesPart>
std::string unequal_arithmetic(const members& all, TakesPart&& takes_part) {
  std::vector<std::pair<std::string, std::string>> ways;  // and the titles of those who compute so
  for (u32 i = 0; i < all.size(); ++i) {
    if (!takes_part(i)) continue;
    const joining& j = all[i].joined;
    const std::string way = printable(j.device + (j.arithmetic.empty() ? "" : " with " + j.arithmetic));
    const auto at = std::find_if(ways.begin(), ways.end(), [&](const auto& w) { return w.first == way; });
    if (at == ways.end()) ways.emplace_back(way, all.title(i));
    else at->second += ", " + all.title(i);
  }
  std::string text;
  for (const auto& [way, who] : ways) text += (text.empty() ? "" : "; ") + way + " on " + who;
  return ways.size() > 1 ? text : "";
}

/// Who is where, and in emulation how to pace each link.
inline roster roster_of(const members& all, const cluster_settings& s) {
  roster r;
  for (u32 i = 0; i < all.size(); ++i) r.members.push_back({i, all[i].name, all[i].c->remote().announce});
  if (!s.emulate || !s.machines) return r;
  for (int a = 0; a < s.peers; ++a)
    for (int b = 0; b < s.peers; ++b)
      if (a != b) {
        const path& x = s.machines->between(a, b);
        r.paces.push_back({u32(a), u32(b), x.bytes_per_second * 8, x.latency});
      }
  return r;
}

}  // namespace fusionllm::inline v0
