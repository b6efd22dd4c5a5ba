// SPDX-License-Identifier: Apache-2.0
// Messages that have come, or are on their way in, and were not used yet: those of the step under way and of the next one.
// Each has one place, so that none comes twice. A message's bytes are in a buffer of the pool, which nobody else gives
// back before the message is dropped.
#pragma once

#include "buffer_pool.hpp"
#include "expected_messages.hpp"

namespace fusionllm::inline v0 {

class message_box {
 public:
  struct message {
    frame_header header;
    int buffer;  ///< -1: an empty payload
    bool whole;  ///< else it is still arriving
  };

  message_box(const expected_messages& expected, buffer_pool& buffers) : expected_(expected), buffers_(buffers) {}

  /// The step that is under way or comes next.
  u64 step() const { return step_; }
  void set_step(u64 step) { step_ = step; }
  /// The step is over. Errors: protocol, for a message of it that is still here: nobody has a use for it.
  void end_step() {
    for (const message& m : all_)
      if (m.header.step == step_) expected_.came_twice(m.header);
    ++step_;
  }

  /// Memory for a message that begins to arrive. Errors: protocol, for what cannot be expected now; nothing is allocated
  /// then.
  std::span<std::byte> place(const frame_header& h) {
    expected_.check(h, step_);
    if (find_same(h)) expected_.came_twice(h);
    if (h.total_length == 0) return {};
    const int b = buffers_.take(h.total_length);
    buffers_[b].resize(h.total_length);
    all_.push_back({h, b, false});
    return buffers_[b];
  }
  /// A whole message is in the memory that place() gave, or elsewhere: then it is copied. Errors: protocol.
  void deliver(const frame_header& h, const_byte_span payload) {
    expected_.check(h, step_);
    if (payload.size() != h.total_length)
      fail(errc::protocol, expected_.title(h.source), " announced ", h.total_length, " bytes and sent ", payload.size());
    if (h.kind == summary_kind) step_summary::check(payload);
    if (message* m = find_same(h)) {
      if (m->whole || payload.data() != buffers_[m->buffer].data()) expected_.came_twice(h);
      m->whole = true;
    } else {
      const int b = payload.empty() ? -1 : buffers_.take(payload.size());
      if (b >= 0) buffers_[b].assign(payload.begin(), payload.end());
      all_.push_back({h, b, true});
    }
  }
  /// A message that was placed will not come after all.
  void abandon(const_byte_span memory) {
    for (const message& m : all_)
      if (!m.whole && buffers_[m.buffer].data() == memory.data()) return drop(m);
  }

  /// A whole message of this step, null if it is not here. It stays where it is until another one is added or leaves.
  const message* find(frame_kind kind, u32 edge, u32 micro_batch) const {
    return find_if([&](const frame_header& h) { return h.kind == kind && h.edge == edge && h.micro_batch == micro_batch; });
  }
  /// The first of this step whose header fits.
  template <class Fits>
  const message* find_if(Fits&& fits) const {
    for (const message& m : all_)
      if (m.whole && m.header.step == step_ && fits(m.header)) return &m;
    return nullptr;
  }
  /// f(header) for all whole ones of this step.
  template <class F>
  void each(F&& f) const {
    for (const message& m : all_)
      if (m.whole && m.header.step == step_) f(m.header);
  }
  const_byte_span bytes_of(const message& m) const { return m.buffer < 0 ? const_byte_span{} : const_byte_span(buffers_[m.buffer]); }

  /// Of one that is not empty.
  std::byte* memory_of(const message& m) { return buffers_[m.buffer].data(); }

  void drop(const message& m) { release(take(m)); }
  /// The message leaves; its buffer stays taken until it is released.
  int take(const message& m) {
    const int buffer = m.buffer;
    all_[std::size_t(&m - all_.data())] = all_.back();
    all_.pop_back();
    return buffer;
  }
  void release(int buffer) {
    if (buffer >= 0) buffers_.give_back(buffer);
  }

 private:
  /// What has the place of `h`, whole or not.
  message* find_same(const frame_header& h) {
    for (message& m : all_)
      if (m.header.kind == h.kind && m.header.step == h.step && m.header.edge == h.edge && m.header.micro_batch == h.micro_batch &&
          m.header.source == h.source)
        return &m;
    return nullptr;
  }

  const expected_messages& expected_;
  buffer_pool& buffers_;
  u64 step_ = 0;
  std::vector<message> all_;
};

}  // namespace fusionllm::inline v0
