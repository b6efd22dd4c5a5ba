// SPDX-License-Identifier: Apache-2.0
// Memory of a peer: one aligned block, on the host or of a device, and the packing of values into it by the times at which they live.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "../core/error.hpp"
#include "../device/device_memory.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

inline constexpr u64 memory_alignment = 64;
constexpr u64 aligned(u64 bytes) { return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment; }

/// Zeroed memory, aligned to a cache line: of a device that has its own (which the host does not read), else the host's.
/// Error: resource.
class memory_block {
 public:
  memory_block() = default;
  explicit memory_block(u64 bytes, device_memory* of = nullptr) : size_(aligned(std::max<u64>(bytes, 1))) {
    if (of != nullptr) {
      on_device_ = device_array(*of, size_);
      return;
    }
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(memory_alignment, size_)));
    if (!data_) fail(errc::resource, "could not allocate ", size_, " bytes: use smaller micro-batches or more peers");
    std::memset(data_.get(), 0, size_);
  }
  std::byte* data() const { return data_ ? data_.get() : on_device_.data(); }
  u64 size() const { return size_; }

 private:
  struct release {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, release> data_;
  device_array on_device_;
  u64 size_ = 0;
};

/// Something that lives from instant `first` to instant `last`, both included, and where it was put.
struct packed_value {
  u64 bytes = 0;
  int first = 0;
  int last = -1;   ///< before `first`: never alive
  u64 offset = 0;
  bool alive() const { return last >= first && bytes > 0; }
};

/// Gives each value an offset so that no two that live at once overlap: largest first, each at the lowest place that is
/// free. Returns the bytes needed.
inline u64 pack(std::vector<packed_value*> values) {
  std::erase_if(values, [](const packed_value* v) { return !v->alive(); });
  std::stable_sort(values.begin(), values.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  u64 total = 0;
  std::vector<const packed_value*> placed;
  for (packed_value* v : values) {
    std::vector<std::pair<u64, u64>> taken;
    for (const packed_value* p : placed)
      if (p->first <= v->last && v->first <= p->last) taken.push_back({p->offset, p->offset + aligned(p->bytes)});
    std::sort(taken.begin(), taken.end());
    u64 at = 0;
    for (auto [begin, end] : taken) {
      if (at + aligned(v->bytes) <= begin) break;
      at = (std::max)(at, end);
    }
    v->offset = at;
    total = (std::max)(total, at + aligned(v->bytes));
    placed.push_back(v);
  }
  return total;
}

}  // namespace fusionllm::inline v0
