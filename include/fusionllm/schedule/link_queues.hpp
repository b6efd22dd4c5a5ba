// SPDX-License-Identifier: Apache-2.0
// Messages on their way in replayed steps. A link carries one at a time, the most urgent first: notes, then by step,
// tensors by micro-batch, then parameters; a more urgent one goes between the chunks of one that is on its way, as in the
// transport. Where sites have lines, a message also waits for those of both sites, keeps each for its bytes over that
// line's rate, and is not interrupted. It arrives a latency after its last byte.
#pragma once

#include <algorithm>
#include <optional>

#include "../estimate/cost_model.hpp"

namespace fusionllm::inline v0 {

enum class message_kind : u8 { activation, cotangent, gradient, summary, answer, value };

constexpr const char* name_of(message_kind k) {
  constexpr const char* names[] = {"activation", "cotangent", "gradient", "summary", "answer", "value"};
  return names[std::size_t(k)];
}

struct message_record {
  message_kind kind;
  int from, to;             ///< peers
  int subject;              ///< an edge of the program; a parameter
  int micro_batch;          ///< -1: none
  u64 raw_bytes, bytes;     ///< bytes: on the wire, with the message's overhead
  nanoseconds start = 0, sent = 0, arrived = 0;
  nanoseconds busy = 0;     ///< of the link; less than sent - start where others went between
};

/// A message has its link from some instant to `end`, unless a more urgent one interrupts it.
struct link_turn {
  nanoseconds end = 0;
  int message = -1;
  int number = 0;  ///< of this turn of the link
};

class link_queues {
 public:
  explicit link_queues(const cost_model& costs)
      : costs_(costs),
        links_(std::size_t(costs.peers()) * std::size_t(costs.peers())),
        up_free_(costs.machines().sites.size()),
        down_free_(costs.machines().sites.size()) {}

  /// Takes a message, whose number it gives; its overhead is added. It does not wait for its link yet.
  int add(const message_record& m, int step = 0) {
    constexpr i64 after_all_tensors = i64(1) << 31;
    const bool note = m.kind == message_kind::summary || m.kind == message_kind::answer;
    parcels_.push_back({m, 0, note ? -1 : (i64(step) << 32) + (m.micro_batch < 0 ? after_all_tensors : m.micro_batch)});
    parcel& x = parcels_.back();
    x.m.bytes += costs_.message_overhead();
    x.m.busy = x.left = costs_.link(m.from, m.to).occupancy(x.m.bytes);
    return int(parcels_.size()) - 1;
  }
  const message_record& message(int index) const { return parcels_[std::size_t(index)].m; }

  /// The message is ready to be sent. Gives its turn if it has one now.
  std::optional<link_turn> queue(int index, nanoseconds now) {
    wire& w = link_of(index);
    if (w.active < 0) return begin(w, index, now);
    parcel& on_its_way = parcels_[std::size_t(w.active)];
    const bool interrupts = parcels_[std::size_t(index)].urgency < on_its_way.urgency && w.since <= now && !uses_lines(on_its_way.m);
    if (!interrupts) {
      wait(w, index);
      return std::nullopt;
    }
    on_its_way.left -= now - w.since;
    wait(w, w.active);
    return begin(w, index, now);
  }

  /// A turn is at its end: true if it was not interrupted, and the message is sent.
  bool finish(int index, int turn, nanoseconds now) {
    wire& w = link_of(index);
    if (w.active != index || w.turn != turn) return false;
    message_record& m = parcels_[std::size_t(index)].m;
    m.sent = now;
    m.arrived = now + costs_.link(m.from, m.to).latency;
    w.active = -1;
    return true;
  }
  /// Whose turn it is on the link of a message that was sent.
  std::optional<link_turn> next(int index, nanoseconds now) {
    wire& w = link_of(index);
    if (w.waiting.empty()) return std::nullopt;
    std::pop_heap(w.waiting.begin(), w.waiting.end(), later());
    const int following = w.waiting.back();
    w.waiting.pop_back();
    return begin(w, following, now);
  }

 private:
  struct parcel {
    message_record m;
    nanoseconds left;  ///< time on the link that it still needs
    i64 urgency;  ///< the smallest goes first
  };
  struct wire {
    std::vector<int> waiting;  ///< a heap, most urgent first
    int active = -1;
    nanoseconds since = 0;
    int turn = 0;
  };

  wire& link_of(int index) {
    const message_record& m = message(index);
    return links_[std::size_t(m.from) * std::size_t(costs_.peers()) + std::size_t(m.to)];
  }
  struct later_one {
    const std::vector<parcel>& parcels;
    bool operator()(int a, int b) const {
      const i64 x = parcels[std::size_t(a)].urgency, y = parcels[std::size_t(b)].urgency;
      return x != y ? x > y : a > b;
    }
  };
  later_one later() const { return {parcels_}; }
  void wait(wire& w, int index) {
    w.waiting.push_back(index);
    std::push_heap(w.waiting.begin(), w.waiting.end(), later());
  }

  link_turn begin(wire& w, int index, nanoseconds now) {
    parcel& x = parcels_[std::size_t(index)];
    w.since = now;
    if (uses_lines(x.m)) {
      const std::size_t up = std::size_t(site_of(x.m.from)), down = std::size_t(site_of(x.m.to));
      const u64 up_rate = costs_.machines().sites[up].up, down_rate = costs_.machines().sites[down].down;
      if (up_rate) w.since = (std::max)(w.since, up_free_[up]);
      if (down_rate) w.since = (std::max)(w.since, down_free_[down]);
      if (up_rate) up_free_[up] = w.since + path{0, up_rate}.occupancy(x.m.bytes);
      if (down_rate) down_free_[down] = w.since + path{0, down_rate}.occupancy(x.m.bytes);
    }
    if (x.left == x.m.busy) x.m.start = w.since;
    w.active = index;
    return {w.since + x.left, index, ++w.turn};
  }

  int site_of(int peer) const { return costs_.machines().peers[std::size_t(peer)].site; }
  bool uses_lines(const message_record& m) const {
    const int up = site_of(m.from), down = site_of(m.to);
    return up != down && (costs_.machines().sites[std::size_t(up)].up || costs_.machines().sites[std::size_t(down)].down);
  }

  const cost_model& costs_;
  std::vector<wire> links_;  ///< [from][to]
  std::vector<nanoseconds> up_free_, down_free_;
  std::vector<parcel> parcels_;
};

}  // namespace fusionllm::inline v0
