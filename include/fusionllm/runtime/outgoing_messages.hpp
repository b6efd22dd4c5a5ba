// SPDX-License-Identifier: Apache-2.0
// Messages of one peer on their way to others: their headers, and what went where since the run began. A message's
// buffer is its tag: it is the network's until sent(tag).
#pragma once

#include "buffer_pool.hpp"
#include "engine_host.hpp"

namespace fusionllm::inline v0 {

class outgoing_messages {
 public:
  outgoing_messages(int self, u32 epoch, buffer_pool& buffers, engine_host& host)
      : self_(self), epoch_(epoch), buffers_(buffers), host_(host) {}

  frame_header header(frame_kind kind, u64 step, int to, u32 edge = 0, u32 micro_batch = 0) const {
    frame_header h;
    h.kind = kind;
    h.step = step;
    h.edge = edge;
    h.micro_batch = micro_batch;
    h.source = u32(self_);
    h.destination = u32(to);
    h.epoch = epoch_;
    return h;
  }
  /// Sends a buffer that the caller took. `raw`: its bytes before encoding.
  void send(frame_header h, int buffer, u64 raw) {
    const auto& bytes = buffers_[buffer];
    h.raw_length = raw;
    note(int(h.destination), raw, bytes.size());
    host_.send(int(h.destination), h, bytes, u64(buffer));
  }
  void send_copy(const frame_header& h, const_byte_span bytes) {
    const int b = buffers_.take(bytes.size());
    buffers_[b].assign(bytes.begin(), bytes.end());
    send(h, b, bytes.size());
  }
  /// Sends what `x` encodes itself to, at most `bytes`.
  template <class T>
  void send_encoded(const frame_header& h, const T& x, std::size_t bytes) {
    const int b = buffers_.take(bytes);
    x.encode(buffers_[b]);
    send(h, b, buffers_[b].size());
  }
  void sent(u64 tag) { buffers_.give_back(int(tag)); }

  const std::vector<link_traffic>& traffic() const { return traffic_; }

 private:
  void note(int to, u64 raw, u64 encoded) {
    for (auto& t : traffic_)
      if (t.to == to) {
        ++t.messages;
        t.raw += raw;
        t.encoded += encoded;
        return;
      }
    traffic_.push_back({to, 1, raw, encoded});
  }

  int self_;
  u32 epoch_;
  buffer_pool& buffers_;
  engine_host& host_;
  std::vector<link_traffic> traffic_;
};

}  // namespace fusionllm::inline v0
