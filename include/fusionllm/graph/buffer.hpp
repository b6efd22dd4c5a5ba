// SPDX-License-Identifier: Apache-2.0
// An array whose room is fixed when it is made. Constant evaluation counts every call: an element costs a dozen steps
// in a std::vector and one or two here, which lets models of fifty layers be traced within compilers' limits.
#pragma once

#include <cstddef>

namespace fusionllm::inline v0::detail {

template <class T>
class buffer {
 public:
  constexpr buffer() = default;
  // One more: nvcc's constant evaluation has no arrays of none.
  constexpr explicit buffer(std::size_t room) : data_(new T[room + 1]{}) {}
  /// Full of `x`.
  constexpr buffer(std::size_t size, T x) : data_(new T[size + 1]{}), size_(size) {
    for (std::size_t i = 0; i < size; ++i) data_[i] = x;
  }
  constexpr ~buffer() { delete[] data_; }
  constexpr buffer(const buffer&) = delete;
  constexpr buffer& operator=(const buffer&) = delete;
  constexpr buffer(buffer&& o) noexcept : data_(o.data_), size_(o.size_) {
    o.data_ = nullptr;
    o.size_ = 0;
  }

  /// The caller knows that there is room.
  constexpr T& push(const T& x) { return data_[size_++] = x; }
  constexpr void pop() { --size_; }
  constexpr void clear() { size_ = 0; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr T& operator[](std::size_t i) { return data_[i]; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& operator[](int i) { return data_[i]; }
  constexpr const T& operator[](int i) const { return data_[i]; }
  constexpr std::size_t size() const { return size_; }
  constexpr const T* data() const { return data_; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fusionllm::inline v0::detail
