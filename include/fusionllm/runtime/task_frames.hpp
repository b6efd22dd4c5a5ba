// SPDX-License-Identifier: Apache-2.0
// The frames that a task reads and those that it writes, from the moment it is taken up until its results are sent. While
// it runs they are the device's thread's alone.
#pragma once

#include "../schedule/dispatcher.hpp"
#include "message_box.hpp"
#include "outgoing_messages.hpp"

namespace fusionllm::inline v0 {

class task_frames {
 public:
  task_frames(const peer_share& share, const stage_compute& compute, const sizes& bounds, buffer_pool& buffers, message_box& box, outgoing_messages& out)
      : share_(share), compute_(compute), bounds_(bounds), buffers_(buffers), box_(box), messages_(out) {}

  /// Takes the task's messages out of the box, where they must be, and buffers for those it will send.
  void begin(task_ref r) {
    in_.clear();
    in_buffers_.clear();
    for (int e : compute_.fresh_receives(r.task)) {
      const auto* m = box_.find(kind_of(e), u32(e), u32(r.micro_batch));
      in_.push_back(box_.bytes_of(*m));
      in_buffers_.push_back(box_.take(*m));
    }
    out_.clear();
    out_buffers_.clear();
    for (int e : share_.prog.tasks[std::size_t(r.task)].sends) {
      out_buffers_.push_back(buffers_.take(std::size_t(compute_.max_frame_bytes(e, bounds_))));
      out_.push_back(&buffers_[out_buffers_.back()]);
    }
  }
  std::span<const const_byte_span> in() const { return in_; }
  std::span<std::vector<std::byte>* const> out() const { return out_; }

  /// The task has run: what it read is released, what it wrote is sent.
  void end(task_ref r) {
    for (int b : in_buffers_) box_.release(b);
    const auto& sends = share_.prog.tasks[std::size_t(r.task)].sends;
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const int e = sends[i], to = share_.p.peer_of(share_.prog.edges[std::size_t(e)].to, r.micro_batch);
      frame_header h = messages_.header(kind_of(e), box_.step(), to, u32(e), u32(r.micro_batch));
      h.codec = compute_.codec_of_edge(e)->wire_id();
      messages_.send(h, out_buffers_[i], compute_.raw_bytes(e, compute_.sizes_of(r.micro_batch)));
    }
  }

 private:
  frame_kind kind_of(int e) const {
    return share_.prog.edges[std::size_t(e)].kind == edge_kind::activation ? frame_kind::activation : frame_kind::cotangent;
  }

  const peer_share& share_;
  const stage_compute& compute_;
  sizes bounds_;
  buffer_pool& buffers_;
  message_box& box_;
  outgoing_messages& messages_;
  std::vector<const_byte_span> in_;
  std::vector<int> in_buffers_;
  std::vector<std::vector<std::byte>*> out_;
  std::vector<int> out_buffers_;
};

}  // namespace fusionllm::inline v0
