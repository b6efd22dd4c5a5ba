// SPDX-License-Identifier: Apache-2.0
// A graph and a plan as one peer of it sees them: where the peer is, what it owns, whom it owes what. Nothing here changes
// once a run has its plan.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "../schedule/owners.hpp"
#include "../schedule/program.hpp"
#include "optimizer.hpp"

namespace fusionllm::inline v0 {

struct peer_share {
  peer_share(const graph_view& graph, const plan& made, int peer, dtype type, const optimizer_settings& o, std::vector<std::string> peer_names = {})
      : g(graph),
        p(made),
        prog(compile(g, p)),
        self(peer),
        stage(p.stage_of_peer(peer)),
        replicas(p.peers[std::size_t(stage)]),
        replica(int(std::find(replicas.begin(), replicas.end(), peer) - replicas.begin())),
        leader(leader_of(g, p)),
        owners(owners_of(g, p)),
        rules(parameter_rules(g, o.no_decay, o.freeze)),
        real(type),
        names(std::move(peer_names)) {}
  peer_share(const peer_share&) = delete;
  peer_share& operator=(const peer_share&) = delete;

  bool leads() const { return self == leader; }
  int previous_replica() const { return replica > 0 ? replicas[std::size_t(replica) - 1] : -1; }
  bool last_replica() const { return replica + 1 == int(replicas.size()); }

  const parameter_owners& owners_at(int parameter) const { return owners[std::size_t(parameter)]; }
  bool updates(int parameter) const { return rules[std::size_t(parameter)].updates; }
  /// Is the total of this use of a parameter formed on this very peer?
  bool forms_total(int parameter, int use) const { return last_replica() && owners_at(parameter).stages[std::size_t(use)] == stage; }
  /// Who forms it.
  int former_of(int parameter, int use) const { return p.peers[std::size_t(owners_at(parameter).stages[std::size_t(use)])].back(); }
  const parameter_info& parameter(int i) const { return g.params[std::size_t(i)]; }
  i64 count_of(int i) const { return i64(parameter(i).count()); }
  u64 bytes_of(int i) const { return parameter(i).count() * size_of(real); }

  /// Of a peer, for messages.
  std::string title(u64 peer) const { return peer < names.size() ? names[std::size_t(peer)] : "peer " + std::to_string(peer); }

  graph_view g;
  plan p;
  program prog;
  int self, stage;
  std::vector<int> replicas;             ///< of the stage
  int replica;                           ///< this peer's place among them
  int leader;                            ///< of the run
  std::vector<parameter_owners> owners;  ///< by parameter
  std::vector<parameter_rule> rules;     ///< by parameter
  dtype real;
  std::vector<std::string> names;        ///< of peers; empty: their numbers
};

}  // namespace fusionllm::inline v0
