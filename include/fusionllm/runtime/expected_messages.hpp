// SPDX-License-Identifier: Apache-2.0
// What may arrive at a peer. Every message has one source, one place in the step and one largest length, which follow
// from the plan: whatever else comes is refused before anything is allocated for it.
#pragma once

#include "messages.hpp"
#include "peer_share.hpp"
#include "stage_compute.hpp"

namespace fusionllm::inline v0 {

class expected_messages {
 public:
  expected_messages(const peer_share& share, const stage_compute& compute, const sizes& bounds, u32 epoch)
      : share_(share), compute_(compute), bounds_(bounds), epoch_(epoch) {}

  std::string title(u64 peer) const { return share_.title(peer); }

  /// Errors: protocol, for a message that nobody should send to this peer in step `step` or the next.
  void check(const frame_header& h, u64 step) const {
    if (h.step != step && h.step != step + 1)
      fail(errc::protocol, title(h.source), " sends step ", h.step, ", expected ", step, " or ", step + 1);
    if (h.epoch != epoch_) fail(errc::protocol, title(h.source), " works on plan ", h.epoch, ", expected ", epoch_);
    if (h.kind == frame_kind::activation || h.kind == frame_kind::cotangent) check_tensor(h);
    else if (h.kind == frame_kind::gradient || h.kind == frame_kind::parameter) check_parameter(h);
    else if (h.kind == summary_kind) {
      if (!share_.leads() || int(h.source) == share_.leader || share_.p.stage_of_peer(int(h.source)) < 0 || h.edge || h.micro_batch)
        unexpected(h, "a summary");
      check_length(h, step_summary::bytes(share_.g.params.size() + std::size_t(share_.p.micro_batches)) + fault::bytes);
    } else if (h.kind == verdict_kind) {
      if (share_.leads() || int(h.source) != share_.leader || h.edge || h.micro_batch) unexpected(h, "a verdict");
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
    if (h.edge >= share_.prog.edges.size() || h.micro_batch >= u32(share_.p.micro_batches))
      fail(errc::protocol, title(h.source), " sends edge ", h.edge, ", micro-batch ", h.micro_batch, "; this plan has ",
           share_.prog.edges.size(), " edges and ", share_.p.micro_batches, " micro-batches");
    const edge& e = share_.prog.edges[h.edge];
    if ((e.kind == edge_kind::activation) != (h.kind == frame_kind::activation) ||
        share_.p.peer_of(e.to, int(h.micro_batch)) != share_.self || share_.p.peer_of(e.from, int(h.micro_batch)) != int(h.source))
      unexpected(h, "a tensor");
    const codec* c = compute_.codec_of_edge(int(h.edge));
    if (h.codec != c->wire_id())
      fail(errc::protocol, title(h.source), " sends edge ", h.edge, " by codec ", h.codec, ", expected ", int(c->wire_id()), " (", c->label(), ')');
    check_length(h, u64(compute_.max_frame_bytes(int(h.edge), bounds_)));
  }
  void check_parameter(const frame_header& h) const {
    if (h.edge >= share_.g.params.size()) fail(errc::protocol, title(h.source), " sends parameter ", h.edge, " of ", share_.g.params.size());
    const parameter_owners& o = share_.owners[h.edge];
    const bool primary = o.primary == share_.self;
    if (h.kind == frame_kind::parameter) {
      const bool held = std::find(o.holders.begin(), o.holders.end(), share_.self) != o.holders.end();
      if (h.micro_batch || primary || !held || int(h.source) != o.primary) unexpected(h, "a parameter");
    } else {
      const std::size_t u = h.micro_batch / 2;
      const bool total = h.micro_batch % 2;
      if (u >= o.uses.size()) unexpected(h, "a gradient");
      const bool due = total ? primary && !share_.forms_total(int(h.edge), int(u)) && int(h.source) == share_.former_of(int(h.edge), int(u))
                             : o.stages[u] == share_.stage && share_.replica > 0 && int(h.source) == share_.previous_replica();
      if (!due) unexpected(h, "a gradient");
      if (is_poisoned(h)) return;
    }
    const u64 bytes = share_.bytes_of(int(h.edge));
    check_length(h, bytes, bytes);
  }
  void check_length(const frame_header& h, u64 most, u64 least = 0) const {
    if (h.total_length < least || h.total_length > most)
      fail(errc::protocol, title(h.source), " sends ", h.total_length, " bytes in a message of kind ", int(h.kind), ", edge ", h.edge,
           ", expected ", least == most ? "" : "at most ", most);
  }
  [[noreturn]] void unexpected(const frame_header& h, const char* what) const {
    fail(errc::protocol, title(h.source), " sends ", what, " (edge ", h.edge, ", part ", h.micro_batch, ") to ", title(u64(share_.self)),
         ", which this plan does not have it send there");
  }

  const peer_share& share_;
  const stage_compute& compute_;
  sizes bounds_;
  u32 epoch_;
};

}  // namespace fusionllm::inline v0
