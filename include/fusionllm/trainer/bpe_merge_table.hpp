// SPDX-License-Identifier: Apache-2.0
// Which two neighbouring tokens join, how early, and to which token: a hash table with open addressing, at most half
// full.
#pragma once

#include <bit>
#include <vector>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

class merge_table {
 public:
  static constexpr u32 never = ~u32(0);
  struct merge {
    u32 left = 0, right = 0, result = 0;
  };

  /// Room for `merges` merges.
  explicit merge_table(std::size_t merges = 0)
      : slots_(std::bit_ceil(merges * 2 + 2)), shift_(64 - std::countr_zero(slots_.size())) {
    merges_.reserve(merges);
  }

  /// Appends a merge, whose rank is the number of those before it; false: the pair has one already.
  bool add(merge m) {
    const u64 key = key_of(m.left, m.right);
    std::size_t at = place_of(key);
    while (slots_[at].rank != never) {
      if (slots_[at].key == key) return false;
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = {key, u32(merges_.size())};
    merges_.push_back(m);
    return true;
  }

  /// The rank of the merge of two neighbours; `never`: they do not join.
  u32 rank(u32 left, u32 right) const {
    const u64 key = key_of(left, right);
    std::size_t at = place_of(key);
    while (slots_[at].rank != never && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return slots_[at].rank;
  }
  const merge& operator[](u32 rank) const { return merges_[rank]; }
  std::size_t size() const { return merges_.size(); }

 private:
  struct slot {
    u64 key = 0;
    u32 rank = never;
  };
  static u64 key_of(u32 left, u32 right) { return u64(left) << 32 | right; }
  std::size_t place_of(u64 key) const {
    key = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
    return std::size_t(key >> shift_);
  }

  std::vector<slot> slots_;
  int shift_;
  std::vector<merge> merges_;
};

}  // namespace fusionllm::inline v0
