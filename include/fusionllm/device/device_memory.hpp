// SPDX-License-Identifier: Apache-2.0
// Memory that the host does not read, and the queue of a device that has it. All work of the device (kernels, copies,
// zeroing) runs in the order of the calls; calls return before it has run, unless they say otherwise. What the host wants
// to see it asks for with `download`, and looks at when a ticket that was taken later is reached. A device without such
// memory computes at once, in plain memory: its context has none (device_context::memory).
#pragma once

#include <memory>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// One thread at a time calls. Errors: resource, where memory is short; timeout, naming the device; internal, for what
/// went wrong in work submitted earlier.
class device_memory {
 public:
  virtual ~device_memory() = default;

  /// Zeroed memory of the device, aligned to 256 bytes. Not in a steady step: it may wait.
  virtual void* allocate(u64 bytes) = 0;
  /// When what was called before has run.
  virtual void release(void* memory) noexcept = 0;

  /// Zeroed host memory that the device's work reads and writes too: for results, and for copies that do not wait.
  virtual void* allocate_shared(u64 bytes) = 0;
  virtual void release_shared(void* memory) noexcept = 0;

  /// Copies to the device, from any host memory, which may change as soon as this returns.
  virtual void upload(void* to, const void* from, u64 bytes) = 0;
  /// Copies from the device; `to` is shared memory, and has the bytes when a later ticket is reached. What the device's
  /// memory is used for next need not wait for the copy.
  virtual void download(void* to, const void* from, u64 bytes) = 0;
  /// Copies from the device to any host memory, and waits for that.
  virtual void read(void* to, const void* from, u64 bytes) = 0;
  /// Within the device's memory.
  virtual void copy(void* to, const void* from, u64 bytes) = 0;
  virtual void zero(void* to, u64 bytes) = 0;

  /// A ticket for all that was called before.
  virtual u64 mark() = 0;
  virtual bool reached(u64 ticket) = 0;
  /// Returns when the ticket is reached, at most `limit` later.
  virtual void wait(u64 ticket, nanoseconds limit) = 0;

  /// Waits for all that was called before, as long as a step may take.
  void settle() { wait(mark(), longest_wait); }
  static constexpr nanoseconds longest_wait = 600 * second;
};

/// Owned memory of a device, or shared memory.
template <bool Shared>
class device_block {
 public:
  device_block() = default;
  device_block(device_memory& of, u64 bytes)
      : data_(static_cast<std::byte*>(Shared ? of.allocate_shared(bytes) : of.allocate(bytes)), release{&of}), size_(bytes) {}
  std::byte* data() const { return data_.get(); }
  u64 size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }
  /// At least `bytes`; what it held is lost where it grows.
  void grow(device_memory& of, u64 bytes) {
    if (bytes > size_) *this = {}, *this = device_block(of, bytes);
  }

 private:
  struct release {
    device_memory* of = nullptr;
    void operator()(std::byte* p) const { Shared ? of->release_shared(p) : of->release(p); }
  };
  std::unique_ptr<std::byte, release> data_;
  u64 size_ = 0;
};
using device_array = device_block<false>;
using shared_array = device_block<true>;

}  // namespace fusionllm::inline v0
