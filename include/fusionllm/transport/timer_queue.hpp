// SPDX-License-Identifier: Apache-2.0
// Pending timers in order of time, ties in order of insertion: the order in which they run is a function of the calls
// alone. Both reactors keep their timers in it.
#pragma once

#include <algorithm>
#include <vector>

#include "reactor.hpp"

namespace fusionllm::inline v0 {
class timer_queue {
 public:
  timer_queue() = default;
  timer_queue(const timer_queue&) = delete;
  timer_queue& operator=(const timer_queue&) = delete;
  ~timer_queue() { clear(); }
  void clear() {
    heap_.clear();
    free_.clear();
    stale_ = 0;
    const std::vector<place> doomed = std::exchange(slots_, {});  // tasks may cancel timers while they are destroyed
  }

  timer_id add(nanoseconds when, reactor::task t) {
    u32 slot;
    if (free_.empty()) {
      slot = u32(slots_.size());
      slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[slot].run = std::move(t);
    heap_.push_back({when, order_++, slot, slots_[slot].generation});
    std::push_heap(heap_.begin(), heap_.end(), later);
    return {u64(slots_[slot].generation) << 32 | slot};
  }
  bool cancel(timer_id id) {
    const u32 slot = u32(id.value), generation = u32(id.value >> 32);
    if (!id || slot >= slots_.size() || slots_[slot].generation != generation) return false;
    release(slot);
    if (++stale_ > 64 && stale_ > heap_.size() / 2) sweep();
    return true;
  }
  bool empty() {
    trim();
    return heap_.empty();
  }
  /// When the first one is due; `reactor::forever` when there is none.
  nanoseconds next() { return empty() ? reactor::forever : heap_.front().when; }
  /// Removes the first one. Not when empty.
  reactor::task pop() {
    trim();
    const u32 slot = heap_.front().slot;
    drop_front();
    reactor::task t = std::move(slots_[slot].run);
    release(slot);
    return t;
  }

 private:
  struct entry {
    nanoseconds when;
    u64 order;
    u32 slot, generation;
  };
  struct place {
    reactor::task run;
    u32 generation = 1;
  };
  static bool later(const entry& a, const entry& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }
  bool is_stale(const entry& e) const { return slots_[e.slot].generation != e.generation; }
  void release(u32 slot) {
    const reactor::task doomed = std::move(slots_[slot].run);  // goes last: it may add and cancel timers when it does
    if (++slots_[slot].generation == 0) slots_[slot].generation = 1;
    free_.push_back(slot);
  }
  void drop_front() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
  void trim() {
    while (!heap_.empty() && is_stale(heap_.front())) {
      drop_front();
      --stale_;
    }
  }
  void sweep() {
    std::erase_if(heap_, [this](const entry& e) { return is_stale(e); });
    std::make_heap(heap_.begin(), heap_.end(), later);
    stale_ = 0;
  }

  std::vector<entry> heap_;
  std::vector<place> slots_;
  std::vector<u32> free_;
  u64 order_ = 0;
  std::size_t stale_ = 0;
};

}  // namespace fusionllm::inline v0
