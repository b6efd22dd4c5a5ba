// SPDX-License-Identifier: Apache-2.0
// Strided views of memory: transposed, sliced, reversed and broadcast tensors. A link sends what a view means, in
// logical order, never what happens to lie in memory. A view is checked once, when it is made: every element that it
// can reach lies inside the memory that it was made over.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>

#include "error.hpp"
#include "types.hpp"

namespace fusionllm::inline v0 {

namespace detail {
inline constexpr i64 largest_i64 = 0x7FFFFFFFFFFFFFFF;

/// a * b of non-negative numbers, or -1 where it does not fit.
constexpr i64 product_or_negative(i64 a, i64 b) { return b != 0 && a > largest_i64 / b ? -1 : a * b; }
}  // namespace detail

/// Extents and strides of a tensor of rank 0 to 4 over bytes it does not own. Strides count elements and may be zero
/// (broadcast) or negative (reversed). Byte is `const std::byte` for a source, `std::byte` for a destination.
template <class Byte>
class strided {
 public:
  static constexpr int max_rank = 4;

  /// A view over `memory` whose element [0, 0, ...] is element `offset` of it.
  /// Errors: errc::model when rank, extents or strides are no tensor, or reach outside `memory`.
  strided(std::span<Byte> memory, dtype type, std::initializer_list<i64> extents, std::initializer_list<i64> strides,
          i64 offset = 0)
      : type_(type), rank_(int(extents.size())) {
    if (extents.size() > std::size_t(max_rank) || extents.size() != strides.size())
      fail(errc::model, "a strided view has ", extents.size(), " extents and ", strides.size(),
           " strides: give as many of each, ", max_rank, " at most");
    std::size_t axis = 0;
    for (i64 e : extents) extent_[axis++] = e;
    axis = 0;
    for (i64 s : strides) stride_[axis++] = s;
    check(memory, offset);
  }

  dtype type() const { return type_; }
  int rank() const { return rank_; }
  i64 extent(int axis) const { return extent_[std::size_t(axis)]; }
  i64 stride(int axis) const { return stride_[std::size_t(axis)]; }
  i64 elements() const { return elements_; }
  i64 bytes() const { return elements_ * i64(size_of(type_)); }
  /// The element [0, 0, ...]; null for an empty view.
  Byte* origin() const { return origin_; }
  /// The bytes from the lowest to the end of the highest element that the view reaches.
  std::span<Byte> reach() const {
    if (elements_ == 0) return {};
    const i64 size = i64(size_of(type_));
    return {origin_ + lowest_ * size, std::size_t((highest_ - lowest_ + 1) * size)};
  }

  /// Whether the elements lie in memory in logical order without gaps, so that the view may be sent as it is.
  bool is_contiguous() const {
    i64 expected = 1;
    for (int axis = rank_ - 1; axis >= 0; --axis) {
      if (extent(axis) != 1 && elements_ != 0 && stride(axis) != expected) return false;
      expected *= extent(axis);
    }
    return true;
  }

  /// Whether two index tuples may reach one element, as in a broadcast view. Says yes when in doubt.
  bool overlaps_itself() const {
    if (elements_ < 2) return false;
    i64 covered = 0;  // the axes taken so far reach this far from their first element
    bool taken[max_rank] = {};
    for (int round = 0; round < rank_; ++round) {
      int next = -1;
      for (int axis = 0; axis < rank_; ++axis)
        if (!taken[axis] && (next < 0 || magnitude(stride(axis)) < magnitude(stride(next)))) next = axis;
      taken[next] = true;
      if (extent(next) == 1) continue;
      if (magnitude(stride(next)) <= covered) return true;
      covered += magnitude(stride(next)) * (extent(next) - 1);
    }
    return false;
  }

 private:
  static i64 magnitude(i64 v) { return v < 0 ? -v : v; }

  void check(std::span<Byte> memory, i64 offset) {
    const i64 held = i64(memory.size() / size_of(type_));
    elements_ = 1;
    for (int axis = 0; axis < rank_; ++axis) {
      if (extent(axis) < 0)
        fail(errc::model, "extent ", axis, " of a strided view is ", extent(axis), ": none is negative");
      elements_ = detail::product_or_negative(elements_, extent(axis));
      if (elements_ < 0) fail(errc::model, "the extents of a strided view multiply to more than 2^63 elements");
    }
    if (elements_ == 0) return;
    if (offset < 0 || offset >= held)
      fail(errc::model, "a strided view begins at element ", offset, " of memory that holds ", held);
    i64 low = offset, high = offset;
    for (int axis = 0; axis < rank_; ++axis) {
      const i64 steps = extent(axis) - 1;
      if (steps == 0) continue;
      if (stride(axis) < -held || stride(axis) > held || (stride(axis) != 0 && steps > held)) outside(axis, held);
      const i64 last = detail::product_or_negative(magnitude(stride(axis)), steps);
      if (last < 0 || last > held) outside(axis, held);
      (stride(axis) < 0 ? low : high) += stride(axis) < 0 ? -last : last;
    }
    if (low < 0 || high >= held)
      fail(errc::model, "a strided view reaches elements ", low, " to ", high, " of memory that holds ", held,
           ": check offset, extents and strides (they count elements)");
    lowest_ = low - offset;
    highest_ = high - offset;
    origin_ = memory.data() + offset * i64(size_of(type_));
  }

  void outside(int axis, i64 held) const {
    fail(errc::model, "axis ", axis, " of a strided view (extent ", extent(axis), ", stride ", stride(axis),
         ") reaches outside its memory of ", held, " elements: strides count elements, not bytes");
  }

  dtype type_;
  int rank_;
  std::array<i64, max_rank> extent_{};
  std::array<i64, max_rank> stride_{};
  i64 elements_ = 0;
  i64 lowest_ = 0;
  i64 highest_ = 0;
  Byte* origin_ = nullptr;
};

using strided_source = strided<const std::byte>;
using strided_destination = strided<std::byte>;

namespace detail {

/// Calls f(offset in elements, index in logical order) for each row along the last axis.
template <class Byte, class F>
void for_each_line(const strided<Byte>& view, F&& f) {
  i64 extent[4] = {1, 1, 1, 1}, stride[4] = {};
  for (int axis = 0; axis < view.rank(); ++axis) {
    extent[axis + 4 - view.rank()] = view.extent(axis);
    stride[axis + 4 - view.rank()] = view.stride(axis);
  }
  i64 index = 0;
  for (i64 a = 0; a < extent[0]; ++a)
    for (i64 b = 0; b < extent[1]; ++b)
      for (i64 c = 0; c < extent[2]; ++c, index += extent[3])
        f(a * stride[0] + b * stride[1] + c * stride[2], index, extent[3], stride[3]);
}

template <std::size_t Size>
void copy_line(std::byte* to, i64 to_stride, const std::byte* from, i64 from_stride, i64 n) {
  if (to_stride == 1 && from_stride == 1) return void(std::memcpy(to, from, std::size_t(n) * Size));
  constexpr i64 size = i64(Size);
  for (i64 i = 0; i < n; ++i) std::memcpy(to + i * to_stride * size, from + i * from_stride * size, Size);
}

inline void copy_line(std::size_t size, std::byte* to, i64 to_stride, const std::byte* from, i64 from_stride, i64 n) {
  switch (size) {
    case 1:
      return copy_line<1>(to, to_stride, from, from_stride, n);
    case 2:
      return copy_line<2>(to, to_stride, from, from_stride, n);
    case 4:
      return copy_line<4>(to, to_stride, from, from_stride, n);
    default:
      return copy_line<8>(to, to_stride, from, from_stride, n);
  }
}

inline bool share_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  const auto a_begin = reinterpret_cast<std::uintptr_t>(a.data()), b_begin = reinterpret_cast<std::uintptr_t>(b.data());
  return !a.empty() && !b.empty() && a_begin < b_begin + b.size() && b_begin < a_begin + a.size();
}

inline void check_copy(i64 view_bytes, std::size_t other, bool shared) {
  if (other != std::size_t(view_bytes))
    fail(errc::model, "a strided view of ", view_bytes, " bytes meets a buffer of ", other, ": give exactly that many");
  if (shared) fail(errc::model, "a strided view and the buffer it is copied to or from overlap: give separate memory");
}

}  // namespace detail

/// Copies the tensor that `view` means into `destination`, contiguous, last axis fastest.
/// Errors: errc::model when `destination` has another size or overlaps what the view reaches.
inline void pack(const strided_source& view, std::span<std::byte> destination) {
  detail::check_copy(view.bytes(), destination.size(), detail::share_bytes(view.reach(), destination));
  if (view.elements() == 0) return;
  const std::size_t size = size_of(view.type());
  detail::for_each_line(view, [&](i64 offset, i64 index, i64 n, i64 stride) {
    detail::copy_line(size, destination.data() + index * i64(size), 1, view.origin() + offset * i64(size), stride, n);
  });
}

/// The inverse of `pack`. Errors: as there, and errc::model when two indices of `view` may be one element.
inline void unpack(std::span<const std::byte> source, const strided_destination& view) {
  detail::check_copy(view.bytes(), source.size(), detail::share_bytes(view.reach(), source));
  if (view.overlaps_itself())
    fail(errc::model,
         "a strided view to write to has elements that overlap (broadcast?): write to a tensor of its own");
  if (view.elements() == 0) return;
  const std::size_t size = size_of(view.type());
  detail::for_each_line(view, [&](i64 offset, i64 index, i64 n, i64 stride) {
    detail::copy_line(size, view.origin() + offset * i64(size), stride, source.data() + index * i64(size), 1, n);
  });
}

}  // namespace fusionllm::inline v0
