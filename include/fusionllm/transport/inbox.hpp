// SPDX-License-Identifier: Apache-2.0
// Messages that are arriving, put together from chunks. A message goes into memory that the receiver supplies, or into
// a buffer whose size is bounded; nothing is allocated for a length that was not checked.
#pragma once

#include <algorithm>
#include <vector>

#include "frame.hpp"

namespace fusionllm::inline v0 {
/// The messages of one connection that are arriving.
class inbox {
 public:
  struct limits {
    u64 buffer_cap = 16 << 20;     ///< bytes of messages for which the receiver supplied no memory
    std::size_t open_messages = 256;
  };
  explicit inbox(const limits& l) : limits_(l) {}

  /// Where the payload of the checked frame `h` goes. `place(h)` is asked once a message and answers with memory of
  /// exactly `total_length` bytes, or with none. Errors: protocol; internal when the memory has another size.
  template <class Place>
  byte_span open(const frame_header& h, Place&& place) {
    partial* p = find(h.message);
    if (!p) {
      if (h.chunk_offset != 0)
        fail(errc::protocol, "chunk at ", h.chunk_offset, " of message ", h.message, ", which never began");
      if (open_.size() >= limits_.open_messages)
        fail(errc::protocol, "message ", h.message, " would be number ", open_.size() + 1,
             " of the unfinished ones, the limit is ", limits_.open_messages);
      p = &open_.emplace_back(begin(h, place(h)));
    } else if (h.total_length != p->header.total_length || h.kind != p->header.kind) {
      fail(errc::protocol, "message ", h.message, " began with ", p->header.total_length, " bytes and goes on with ",
           h.total_length);
    } else if (h.chunk_offset != p->received) {
      fail(errc::protocol, "chunk of message ", h.message, " at ", h.chunk_offset, ", expected at ", p->received);
    }
    return p->memory.subspan(std::size_t(h.chunk_offset), h.chunk_length);
  }

  /// Counts a chunk that has arrived and was verified. True when the message is whole: see payload(), then close().
  bool commit(const frame_header& h) {
    partial* p = find(h.message);
    p->received += h.chunk_length;
    return p->received == p->header.total_length;
  }
  byte_span payload(const frame_header& h) { return find(h.message)->memory; }

  void close(const frame_header& h) {
    partial* p = find(h.message);
    buffered_ -= p->buffer.size();
    if (p->buffer.capacity() > 0 && spare_.size() < 4 && p->buffer.capacity() <= (64 << 10)) {
      p->buffer.clear();
      spare_.push_back(std::move(p->buffer));
    }
    if (p != &open_.back()) *p = std::move(open_.back());
    open_.pop_back();
  }
  bool empty() const { return open_.empty(); }
  void clear() {
    open_.clear();
    buffered_ = 0;
  }

 private:
  struct partial {
    frame_header header;
    byte_span memory;
    std::vector<std::byte> buffer;
    u64 received = 0;
  };
  partial* find(u32 message) {
    for (partial& p : open_)
      if (p.header.message == message) return &p;
    return nullptr;
  }
  partial begin(const frame_header& h, byte_span placed) {
    partial p;
    p.header = h;
    if (!placed.empty() && placed.size() != h.total_length)
      fail(errc::internal, "place() gave ", placed.size(), " bytes for a message of ", h.total_length);
    p.memory = placed;
    if (placed.empty() && h.total_length != 0) {
      if (h.total_length > limits_.buffer_cap - (std::min)(limits_.buffer_cap, buffered_))
        fail(errc::protocol, "message of ", h.total_length, " bytes (kind ", unsigned(h.kind),
             ") for which the receiver gave no memory; ", buffered_, " bytes are buffered, the cap is ",
             limits_.buffer_cap);
      if (!spare_.empty()) {
        p.buffer = std::move(spare_.back());
        spare_.pop_back();
      }
      p.buffer.resize(std::size_t(h.total_length));
      p.memory = p.buffer;
      buffered_ += p.buffer.size();
    }
    return p;
  }

  limits limits_;
  std::vector<partial> open_;
  std::vector<std::vector<std::byte>> spare_;
  u64 buffered_ = 0;
};

}  // namespace fusionllm::inline v0
