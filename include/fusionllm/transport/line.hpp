// SPDX-License-Identifier: Apache-2.0
// One line that frames occupy one after another, each for bytes / bandwidth. Connections that share a site's line share
// the object; the most urgent chunk goes first, equal ones in turn. Times follow an absolute schedule: a timer that
// fires late delays one frame and not those after it.
#pragma once

#include <memory>
#include <vector>

#include "outbox.hpp"
#include "reactor.hpp"

namespace fusionllm::inline v0 {

/// One direction of a link: a message of n bytes arrives latency + n / bandwidth after it got the line.
struct link_spec {
  nanoseconds latency = 0;
  u64 bits_per_second = 0;  ///< 0: no limit
  nanoseconds jitter = 0;   ///< virtual networks: up to this much more latency, drawn from the seed
};

/// Bytes of payload in the chunks of a line: what takes `longest` on it, so that a heartbeat waits no longer; at most
/// 64 KiB, so that handing over a chunk is short against its time on the line.
constexpr u64 paced_chunk(u64 bits_per_second, nanoseconds longest, u64 frame_cap) {
  if (bits_per_second == 0) return frame_cap;
  const u64 fits = u64(longest / microsecond) * (bits_per_second / 8) / 1'000'000;
  const u64 most = frame_cap < (64 << 10) ? frame_cap : (64 << 10);
  return fits < 1024 ? 1024 : fits > most ? most : fits;
}

/// A connection, as a line sees it.
class line_user {
 public:
  /// The next chunk; `bytes` 0 when there is none now.
  virtual chunk_key next_chunk() = 0;
  /// The line is the caller's from `start` to `end`: send the chunk.
  virtual void grant(nanoseconds start, nanoseconds end) = 0;

 protected:
  ~line_user() = default;
};
class line {
 public:
  line(reactor& r, u64 bits_per_second) : reactor_(r), bits_per_second_(bits_per_second) {}
  ~line() { reactor_.cancel(timer_); }
  line(const line&) = delete;
  line& operator=(const line&) = delete;

  /// Holds from the next frame on.
  void set_bits_per_second(u64 rate) { bits_per_second_ = rate; }
  u64 bits_per_second() const { return bits_per_second_; }
  /// Time on the line of `bytes`.
  nanoseconds duration(u64 bytes) const {
    if (bits_per_second_ == 0) return 0;
    const u64 bits = bytes * 8;
    const u64 whole = bits / bits_per_second_, rest = bits % bits_per_second_;
    const u64 micro = rest * 1'000'000 / bits_per_second_, left = rest * 1'000'000 % bits_per_second_;
    return nanoseconds(whole * u64(second) + micro * 1000 + left * 1000 / bits_per_second_);
  }
  nanoseconds busy() const { return busy_; }
  u64 bytes() const { return bytes_; }

  void want(line_user& u) {
    for (const line_user* w : waiting_)
      if (w == &u) return;
    waiting_.push_back(&u);
    if (!serving_ && !timer_) serve();
  }
  void forget(line_user& u) { std::erase(waiting_, &u); }

 private:
  static constexpr std::size_t none = ~std::size_t(0);

  void serve() {
    serving_ = true;
    while (!waiting_.empty() && free_at_ <= reactor_.now()) {
      std::size_t best = none;
      chunk_key key{};
      for (std::size_t i = 0; i < waiting_.size();) {
        const chunk_key k = waiting_[i]->next_chunk();
        if (k.bytes == 0) {
          waiting_.erase(waiting_.begin() + std::ptrdiff_t(i));
          continue;
        }
        if (best == none || k.before(key)) best = i, key = k;
        ++i;
      }
      if (best == none) break;
      line_user* u = waiting_[best];
      waiting_.erase(waiting_.begin() + std::ptrdiff_t(best));
      const nanoseconds start = free_at_ > key.since ? free_at_ : key.since;
      const nanoseconds took = duration(key.bytes);
      free_at_ = start + took;
      busy_ += took;
      bytes_ += key.bytes;
      u->grant(start, free_at_);
    }
    serving_ = false;
    if (!waiting_.empty())
      timer_ = reactor_.at(free_at_, [this] {
        timer_ = {};
        serve();
      });
  }

  reactor& reactor_;
  u64 bits_per_second_;
  std::vector<line_user*> waiting_;
  nanoseconds free_at_ = 0;
  nanoseconds busy_ = 0;
  u64 bytes_ = 0;
  timer_id timer_;
  bool serving_ = false;
};

}  // namespace fusionllm::inline v0
