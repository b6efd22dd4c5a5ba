// SPDX-License-Identifier: Apache-2.0
// Tensors of a device as the host sees them, and the host's bytes as the device does: the same memory where that is the
// host's, else copies that are there when the device has settled. One use at a time: begin, then one call a tensor. Memory
// grows to its size once.
#pragma once

#include <vector>

#include "../device/kernel.hpp"
#include "memory.hpp"

namespace fusionllm::inline v0 {

/// Waits until the device has done what it was given; a device without memory of its own has.
inline void settle(device_context& c) {
  if (device_memory* m = c.memory()) m->settle();
}

/// Copies to the host. They stay until the next begin().
class host_copies {
 public:
  explicit host_copies(device_memory* m) : memory_(m) {}

  /// `bytes`: of all tensors together, each `aligned`.
  void begin(u64 bytes) {
    at_ = 0;
    if (memory_ != nullptr) block_.grow(*memory_, bytes);
  }
  const std::byte* copy(const std::byte* tensor, u64 bytes) {
    if (memory_ == nullptr) return tensor;
    std::byte* to = block_.data() + at_;
    at_ += aligned(bytes);
    memory_->download(to, tensor, bytes);
    return to;
  }

 private:
  device_memory* memory_;
  shared_array block_;
  u64 at_ = 0;
};

/// Copies to the device, each in memory of its own.
class device_copies {
 public:
  explicit device_copies(device_memory* m) : memory_(m) {}

  void begin() { used_ = 0; }
  std::byte* copy(std::byte* bytes, u64 count) {
    if (memory_ == nullptr) return bytes;
    if (used_ == blocks_.size()) blocks_.emplace_back();
    device_array& b = blocks_[used_++];
    b.grow(*memory_, count);
    memory_->upload(b.data(), bytes, count);
    return b.data();
  }

 private:
  device_memory* memory_;
  std::vector<device_array> blocks_;
  std::size_t used_ = 0;
};

/// Numbers that the device writes and the host reads when it has settled.
template <class T>
class shared_numbers {
 public:
  shared_numbers() = default;
  shared_numbers(device_memory* m, std::size_t n) : size_(n) {
    if (m != nullptr) shared_ = shared_array(*m, n * sizeof(T));
    else own_.assign(n, T(0));
  }
  T* data() { return shared_.data() != nullptr ? shared_.template as<T>() : own_.data(); }
  const T* data() const { return shared_.data() != nullptr ? shared_.template as<T>() : own_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  std::size_t size() const { return size_; }
  void clear() {
    for (std::size_t i = 0; i < size_; ++i) data()[i] = T(0);
  }

 private:
  std::size_t size_ = 0;
  shared_array shared_;
  std::vector<T> own_;
};

}  // namespace fusionllm::inline v0
