// SPDX-License-Identifier: Apache-2.0
// The machines of a run as numbers: peers, the directed paths between them, the lines that the peers of a site share.
// A topology file expands to it; measurements replace parts of it.
#pragma once

#include <string>
#include <vector>

#include "../core/error.hpp"
#include "path.hpp"

namespace fusionllm::inline v0 {

/// One peer's device.
struct machine {
  std::string name;            ///< "site/number", or what the topology calls it
  int site = 0;
  u64 flops_per_second = 0;    ///< what it reaches, not what its maker prints
  u64 memory_bytes = 0;
  u64 memory_bytes_per_second = 0;  ///< 0: moving bytes costs nothing beside the flops
  nanoseconds launch = 0;      ///< added to every operator
};

/// What all peers of a site together send to and receive from other sites, in bytes per second; 0: no limit.
struct site_line {
  std::string name;
  u64 up = 0;
  u64 down = 0;
};

struct cluster {
  std::vector<site_line> sites;
  std::vector<machine> peers;
  std::vector<path> paths;  ///< [from * peers + to]; the diagonal is not used

  int size() const { return int(peers.size()); }
  const path& between(int from, int to) const { return paths[std::size_t(from) * peers.size() + std::size_t(to)]; }
  path& between(int from, int to) { return paths[std::size_t(from) * peers.size() + std::size_t(to)]; }
  bool same_site(int a, int b) const { return peers[std::size_t(a)].site == peers[std::size_t(b)].site; }
  /// "2 (lab/0)", for messages.
  std::string title(int peer) const { return std::to_string(peer) + " (" + peers[std::size_t(peer)].name + ")"; }
};

/// Peers of one site, all alike and joined by the same path both ways.
inline cluster uniform_cluster(int peers, const machine& each, const path& between) {
  cluster c;
  c.sites.push_back({"site", 0, 0});
  for (int i = 0; i < peers; ++i) {
    c.peers.push_back(each);
    c.peers.back().site = 0;
    c.peers.back().name = "site/" + std::to_string(i);
  }
  c.paths.assign(std::size_t(peers) * std::size_t(peers), between);
  return c;
}

/// Throws errc::topology unless there is a peer, every one has a speed and a site, and every pair has an entry.
inline void check(const cluster& c) {
  if (c.peers.empty()) fail(errc::topology, "the cluster has no peer: describe at least one device");
  if (c.paths.size() != c.peers.size() * c.peers.size())
    fail(errc::topology, "the cluster has ", c.paths.size(), " paths for ", c.peers.size(), " peers, expected ",
         c.peers.size() * c.peers.size(), ": one a directed pair");
  for (int i = 0; i < c.size(); ++i) {
    const machine& m = c.peers[std::size_t(i)];
    if (m.site < 0 || m.site >= int(c.sites.size()))
      fail(errc::topology, "peer ", c.title(i), " is at site ", m.site, ", expected 0 to ", int(c.sites.size()) - 1);
    if (m.flops_per_second == 0)
      fail(errc::topology, "peer ", c.title(i), " has a speed of 0 flops per second: give what it reaches, or leave it out");
    if (m.launch < 0) fail(errc::topology, "peer ", c.title(i), " has a launch time of ", m.launch, " ns, expected 0 or more");
  }
  for (int a = 0; a < c.size(); ++a)
    for (int b = 0; b < c.size(); ++b)
      if (c.between(a, b).latency < 0)
        fail(errc::topology, "the latency from peer ", c.title(a), " to ", c.title(b), " is ", c.between(a, b).latency,
             " ns, expected 0 or more");
}

}  // namespace fusionllm::inline v0
