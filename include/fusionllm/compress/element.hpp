// SPDX-License-Identifier: Apache-2.0
// Elements of any type on their way to and from a codec: conversion to fp32 and back, entries picked by a mask, and
// the search for what is not finite.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "../core/half.hpp"
#include "scan.hpp"
#include "tensor.hpp"

namespace fusionllm::inline v0::detail {

constexpr bool is_real(dtype t) { return t != dtype::int32 && t != dtype::int8; }

template <class T>
T element(const void* data, i64 i) {
  T v;
  std::memcpy(&v, static_cast<const std::byte*>(data) + i * i64(sizeof(T)), sizeof(T));
  return v;
}

/// Element i of a tensor of real numbers.
inline double real_element(const void* data, dtype type, i64 i) {
  switch (type) {
    case dtype::f64:
      return element<double>(data, i);
    case dtype::f16:
      return double(float(element<float16>(data, i)));
    case dtype::bf16:
      return double(float(element<bfloat16>(data, i)));
    default:
      return double(element<float>(data, i));
  }
}

/// Writes v as element i, clamped to the largest finite value of the type.
inline void put_real(void* data, dtype type, i64 i, float v) {
  std::byte* to = static_cast<std::byte*>(data) + i * i64(size_of(type));
  if (type == dtype::f64) {
    const double wide = double(v);
    std::memcpy(to, &wide, 8);
  } else if (type == dtype::f16) {
    const float16 half(v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v);
    std::memcpy(to, &half, 2);
  } else if (type == dtype::bf16) {
    constexpr float largest = std::bit_cast<float>(0x7F7F0000u);
    const bfloat16 half(v > largest ? largest : v < -largest ? -largest : v);
    std::memcpy(to, &half, 2);
  } else {
    std::memcpy(to, &v, 4);
  }
}

/// Position of the first infinity or NaN of n elements, or -1. Integers have none.
inline i64 first_non_finite_element(const void* data, dtype type, i64 n) {
  if (!is_real(type)) return -1;
  if (type == dtype::f32) return first_non_finite(static_cast<const float*>(data), n);
  for (i64 i = 0; i < n; ++i) {
    bool finite = true;
    if (type == dtype::f64) finite = (element<u64>(data, i) >> 52 & 0x7FF) != 0x7FF;
    if (type == dtype::f16) finite = (element<u16>(data, i) & 0x7C00u) != 0x7C00u;
    if (type == dtype::bf16) finite = (element<u16>(data, i) & 0x7F80u) != 0x7F80u;
    if (!finite) return i;
  }
  return -1;
}

/// out[i] = the element of `in` at position i of the mask.
inline void pick(const void* in, std::size_t size, const mask& m, void* out) {
  std::byte* to = static_cast<std::byte*>(out);
  for (u32 p : m.positions) {
    std::memcpy(to, static_cast<const std::byte*>(in) + std::size_t(p) * size, size);
    to += size;
  }
}

/// The inverse; what the mask leaves out becomes zero.
inline void place(const void* in, std::size_t size, const mask& m, void* out) {
  if (m.count() == 0 || m.all) return;
  const std::byte* from = static_cast<const std::byte*>(in);
  for (u32 p : m.positions) {
    std::memcpy(static_cast<std::byte*>(out) + std::size_t(p) * size, from, size);
    from += size;
  }
}

inline void clear(void* data, i64 bytes) {
  if (bytes > 0) std::memset(data, 0, std::size_t(bytes));
}

}  // namespace fusionllm::inline v0::detail
