// SPDX-License-Identifier: Apache-2.0
// What may arrive at a peer. Every message has one source, one place in the step and one largest length, which follow
// from the plan: whatever else comes is refused before anything is allocated for it.
#pragma once

#include "messages.hpp"
#include "stage_compute.hpp"

namespace fusionllm::inline v0 {

/// Where a peer is in its plan.
struct plan_seat {
  plan_seat(const plan& p, int peer) : self(peer), stage(p.stage_of_peer(peer)), replicas(p.peers[std::size_t(stage)]) {
    replica = int(std::find(replicas.begin(), replicas.end(), peer) - replicas.begin());
  }
  int previous_replica() const { return replica > 0 ? replicas[std::size_t(replica) - 1] : -1; }
  bool last_replica() const { return replica + 1 == int(replicas.size()); }
  /// Is the total of this use of a parameter formed on this very peer?
  bool forms_total(const parameter_owners& o, int use) const { return last_replica() && o.stages[std::size_t(use)] == stage; }

  int self, stage, replica = 0;
  std::vector<int> replicas;  ///< of the stage
};

class expected_messages {
 public:
  expected_messages(const graph_view& g, const plan& p, const program& prog, const plan_seat& seat, const std::vector<parameter_owners>& owners,
                    const stage_compute& compute, const sizes& bounds, u32 epoch, u64 real_bytes, const std::vector<std::string>& names)
      : g_(g), plan_(p), program_(prog), seat_(seat), owners_(owners), compute_(compute), bounds_(bounds), epoch_(epoch), real_(real_bytes),
        names_(names), leader_(leader_of(g, p)) {}

  std::string title(u64 peer) const { return peer < names_.size() ? names_[std::size_t(peer)] : "peer " + std::to_string(peer); }

  /// Errors: protocol, for a message that nobody should send to this peer in step `step` or the next.
  void check(const frame_header& h, u64 step) const {
    if (h.step != step && h.step != step + 1)
      fail(errc::protocol, title(h.source), " sends step ", h.step, ", expected ", step, " or ", step + 1);
    if (h.epoch != epoch_) fail(errc::protocol, title(h.source), " works on plan ", h.epoch, ", expected ", epoch_);
    if (h.kind == frame_kind::activation || h.kind == frame_kind::cotangent) check_tensor(h);
    else if (h.kind == frame_kind::gradient || h.kind == frame_kind::parameter) check_parameter(h);
    else if (h.kind == summary_kind) {
      if (seat_.self != leader_ || int(h.source) == leader_ || plan_.stage_of_peer(int(h.source)) < 0 || h.edge || h.micro_batch)
        unexpected(h, "a summary");
      check_length(h, step_summary::bytes(g_.params.size() + std::size_t(plan_.micro_batches)) + fault::bytes);
    } else if (h.kind == verdict_kind) {
      if (seat_.self == leader_ || int(h.source) != leader_ || h.edge || h.micro_batch) unexpected(h, "a verdict");
      const u64 bytes = h.total_length == step_verdict::skipped_bytes ? step_verdict::skipped_bytes : step_verdict::bytes;
      check_length(h, bytes, bytes);
    } else fail(errc::protocol, title(h.source), " sends a message of unknown kind ", int(h.kind));
  }

  [[noreturn]] void came_twice(const frame_header& h) const {
    fail(errc::protocol, title(h.source), " sends a message of kind ", int(h.kind), ", edge ", h.edge, ", part ", h.micro_batch,
         ", step ", h.step, " twice");
  }

 private:
  void check_tensor(const frame_header& h) const {
    if (h.edge >= program_.edges.size() || h.micro_batch >= u32(plan_.micro_batches))
      fail(errc::protocol, title(h.source), " sends edge ", h.edge, ", micro-batch ", h.micro_batch, "; this plan has ",
           program_.edges.size(), " edges and ", plan_.micro_batches, " micro-batches");
    const edge& e = program_.edges[h.edge];
    if ((e.kind == edge_kind::activation) != (h.kind == frame_kind::activation) ||
        plan_.peer_of(e.to, int(h.micro_batch)) != seat_.self || plan_.peer_of(e.from, int(h.micro_batch)) != int(h.source))
      unexpected(h, "a tensor");
    const codec* c = compute_.codec_of_edge(int(h.edge));
    if (h.codec != c->wire_id())
      fail(errc::protocol, title(h.source), " sends edge ", h.edge, " by codec ", h.codec, ", expected ", int(c->wire_id()), " (", c->label(), ')');
    check_length(h, u64(compute_.max_frame_bytes(int(h.edge), bounds_)));
  }
  void check_parameter(const frame_header& h) const {
    if (h.edge >= g_.params.size()) fail(errc::protocol, title(h.source), " sends parameter ", h.edge, " of ", g_.params.size());
    const parameter_owners& o = owners_[h.edge];
    const bool primary = o.primary == seat_.self;
    if (h.kind == frame_kind::parameter) {
      const bool held = std::find(o.holders.begin(), o.holders.end(), seat_.self) != o.holders.end();
      if (h.micro_batch || primary || !held || int(h.source) != o.primary) unexpected(h, "a parameter");
    } else {
      const std::size_t u = h.micro_batch / 2;
      const bool total = h.micro_batch % 2;
      if (u >= o.uses.size()) unexpected(h, "a gradient");
      const bool due = total ? primary && !seat_.forms_total(o, int(u)) && int(h.source) == plan_.peers[std::size_t(o.stages[u])].back()
                             : o.stages[u] == seat_.stage && seat_.replica > 0 && int(h.source) == seat_.previous_replica();
      if (!due) unexpected(h, "a gradient");
      if (is_poisoned(h)) return;
    }
    const u64 bytes = g_.params[h.edge].count() * real_;
    check_length(h, bytes, bytes);
  }
  void check_length(const frame_header& h, u64 most, u64 least = 0) const {
    if (h.total_length < least || h.total_length > most)
      fail(errc::protocol, title(h.source), " sends ", h.total_length, " bytes in a message of kind ", int(h.kind), ", edge ", h.edge,
           ", expected ", least == most ? "" : "at most ", most);
  }
  [[noreturn]] void unexpected(const frame_header& h, const char* what) const {
    fail(errc::protocol, title(h.source), " sends ", what, " (edge ", h.edge, ", part ", h.micro_batch, ") to ", title(u64(seat_.self)),
         ", which this plan does not have it send there");
  }

  const graph_view& g_;
  const plan& plan_;
  const program& program_;
  const plan_seat& seat_;
  const std::vector<parameter_owners>& owners_;
  const stage_compute& compute_;
  sizes bounds_;
  u32 epoch_;
  u64 real_;
  const std::vector<std::string>& names_;
  int leader_;
};

}  // namespace fusionllm::inline v0
