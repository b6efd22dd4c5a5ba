// SPDX-License-Identifier: Apache-2.0
// Messages that wait to be sent, cut into chunks by priority. The most urgent message gives the next chunk, so that a
// heartbeat waits for one chunk and not for the tensor around it. Payloads stay in the caller's memory.
#pragma once

#include <algorithm>
#include <vector>

#include "frame.hpp"

namespace fusionllm::inline v0 {

/// Who goes first. Within one level the smaller deadline, then the earlier send; bulk waits for as long as tensors do.
enum class priority : u8 { control, tensor, bulk, last };

/// A message to send: its payload is `owned`, or `parts` one after another, which must stay untouched until on_sent.
struct outgoing {
  static constexpr std::size_t max_parts = 4;

  frame_header header = {};
  std::array<const_byte_span, max_parts> parts = {};
  std::vector<std::byte> owned = {};
  priority level = priority::control;
  nanoseconds deadline = 0;  ///< any scale: only the order counts
  u64 tag = 0;               ///< given back by on_sent

  u64 size() const {
    u64 n = owned.size();
    for (const auto& part : parts) n += part.size();
    return n;
  }
};

/// One frame on its way out: the bytes of `header`, then those of the parts.
struct outgoing_chunk {
  encoded_header header;
  frame_header decoded;
  std::array<const_byte_span, outgoing::max_parts + 1> parts;
  std::size_t count = 0;
  priority level = priority::control;
  u32 slot = 0;
  bool last = false;

  u64 bytes() const { return frame_header_bytes + decoded.chunk_length; }
};

/// What an arbiter between several outboxes needs to know of the next chunk.
struct chunk_key {
  priority level;
  nanoseconds deadline;
  nanoseconds since;  ///< when the message was put
  u64 bytes;          ///< with its header
  bool before(const chunk_key& o) const { return level != o.level ? level < o.level : deadline < o.deadline; }
};

/// The messages of one connection that wait to be sent.
class outbox {
 public:
  explicit outbox(unsigned version = wire_version) : version_(version) {}

  void put(outgoing&& m, nanoseconds now) {
    u32 slot;
    if (free_.empty()) {
      slot = u32(slots_.size());
      slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    entry& e = slots_[slot];
    e.total = m.size();
    e.message = std::move(m);
    e.offset = 0;
    e.since = now;
    e.order = order_++;
    queued_bytes_ += e.total;
    heap_.push_back(slot);
    std::push_heap(heap_.begin(), heap_.end(), later{slots_});
  }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  u64 queued_bytes() const { return queued_bytes_; }

  chunk_key head(u64 cap) const {
    const entry& e = slots_[heap_.front()];
    return {e.message.level, e.message.deadline, e.since, frame_header_bytes + (std::min)(cap, e.total - e.offset)};
  }

  /// The next chunk, of at most `cap` bytes of payload. Not when empty.
  outgoing_chunk take(u64 cap) {
    const u32 slot = heap_.front();
    entry& e = slots_[slot];
    outgoing_chunk c;
    c.slot = slot;
    c.level = e.message.level;
    c.decoded = e.message.header;
    if (e.offset == 0) e.number = next_number_++;
    c.decoded.message = e.number;
    c.decoded.total_length = e.total;
    if (c.decoded.raw_length == 0) c.decoded.raw_length = e.total;
    c.decoded.chunk_offset = e.offset;
    const u64 length = (std::min)(cap, e.total - e.offset);
    c.decoded.chunk_length = u32(length);
    slice(e, length, c);
    c.header = encode_frame(c.decoded, {c.parts.data(), c.count}, version_);
    e.offset += length;
    queued_bytes_ -= length;
    c.last = e.offset == e.total;
    if (c.last) {
      std::pop_heap(heap_.begin(), heap_.end(), later{slots_});
      heap_.pop_back();
    }
    return c;
  }

  /// Frees a message whose last chunk has left; gives its tag.
  u64 release(const outgoing_chunk& c) {
    entry& e = slots_[c.slot];
    const u64 tag = e.message.tag;
    e.message.owned.clear();
    e.message.parts = {};
    free_.push_back(c.slot);
    return tag;
  }

  /// Forgets every message that still has bytes to send. Chunks already taken stay valid; those of a forgotten
  /// message are never the last.
  void clear() {
    heap_.clear();
    queued_bytes_ = 0;
  }

 private:
  struct entry {
    outgoing message;
    u64 total = 0, offset = 0, order = 0;
    nanoseconds since = 0;
    u32 number = 0;
  };
  struct later {
    const std::vector<entry>& slots;
    bool operator()(u32 a, u32 b) const {
      const entry &x = slots[a], &y = slots[b];
      if (x.message.level != y.message.level) return x.message.level > y.message.level;
      if (x.message.deadline != y.message.deadline) return x.message.deadline > y.message.deadline;
      return x.order > y.order;
    }
  };
  static void slice(const entry& e, u64 length, outgoing_chunk& c) {
    u64 skip = e.offset;
    auto add = [&](const_byte_span part) {
      if (skip >= part.size()) return void(skip -= part.size());
      part = part.subspan(std::size_t(skip));
      skip = 0;
      const std::size_t n = std::size_t((std::min<u64>)(length, part.size()));
      if (n == 0) return;
      c.parts[c.count++] = part.first(n);
      length -= n;
    };
    add(e.message.owned);
    for (const const_byte_span& part : e.message.parts) add(part);
  }

  std::vector<entry> slots_;
  std::vector<u32> free_;
  std::vector<u32> heap_;
  u64 order_ = 0;
  u64 queued_bytes_ = 0;
  u32 next_number_ = 1;
  unsigned version_;
};

}  // namespace fusionllm::inline v0
