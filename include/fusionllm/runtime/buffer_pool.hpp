// SPDX-License-Identifier: Apache-2.0
// Frames on their way in or out. Buffers keep their memory, so that a steady step allocates none; they never move. Only
// idle ones are looked at: the device's thread may be writing into a busy one.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

class buffer_pool {
 public:
  /// An idle buffer with room for so many bytes: of those that have it the smallest, else the largest, which grows.
  int take(std::size_t bytes) {
    int best = -1;
    for (int i = 0; i < int(buffers_.size()); ++i) {
      if (buffers_[std::size_t(i)].busy) continue;
      if (best < 0 || better(buffers_[std::size_t(i)].bytes.capacity(), buffers_[std::size_t(best)].bytes.capacity(), bytes))
        best = i;
    }
    if (best < 0) {
      best = int(buffers_.size());
      buffers_.emplace_back();
    }
    buffer& b = buffers_[std::size_t(best)];
    if (b.bytes.capacity() < bytes) {
      b.bytes.clear();  // what it held need not move
      b.bytes.reserve(bytes);
    }
    b.busy = true;
    return best;
  }
  void give_back(int i) { buffers_[std::size_t(i)].busy = false; }
  std::vector<std::byte>& operator[](int i) { return buffers_[std::size_t(i)].bytes; }
  int size() const { return int(buffers_.size()); }
  int busy() const {
    int n = 0;
    for (const auto& b : buffers_) n += b.busy;
    return n;
  }

 private:
  static bool better(std::size_t a, std::size_t b, std::size_t wanted) {
    const bool fits_a = a >= wanted, fits_b = b >= wanted;
    if (fits_a != fits_b) return fits_a;
    return fits_a ? a < b : a > b;
  }
  struct buffer {
    std::vector<std::byte> bytes;
    bool busy = false;
  };
  std::deque<buffer> buffers_;
};

}  // namespace fusionllm::inline v0
