// SPDX-License-Identifier: Apache-2.0
// Fixed-width names and the element types that memory and the wire know.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusionllm::inline v0 {

using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Durations and instants, in integer nanoseconds: plans must not depend on a compiler's floating point.
using nanoseconds = i64;

inline constexpr nanoseconds microsecond = 1'000;
inline constexpr nanoseconds millisecond = 1'000'000;
inline constexpr nanoseconds second = 1'000'000'000;

/// Physical element types. Models say `real`; a device says which of these it is.
enum class dtype : u8 { f32, f64, f16, bf16, int32, int8 };

/// Bytes of one element.
constexpr std::size_t size_of(dtype t) {
  switch (t) {
    case dtype::f64: return 8;
    case dtype::f32:
    case dtype::int32: return 4;
    case dtype::f16:
    case dtype::bf16: return 2;
    case dtype::int8: return 1;
  }
  return 0;
}

constexpr const char* name_of(dtype t) {
  switch (t) {
    case dtype::f64: return "f64";
    case dtype::f32: return "f32";
    case dtype::int32: return "int32";
    case dtype::f16: return "f16";
    case dtype::bf16: return "bf16";
    case dtype::int8: return "int8";
  }
  return "?";
}

template <class T>
inline constexpr dtype dtype_of = dtype::f32;
template <>
inline constexpr dtype dtype_of<double> = dtype::f64;
template <>
inline constexpr dtype dtype_of<std::int32_t> = dtype::int32;
template <>
inline constexpr dtype dtype_of<std::int8_t> = dtype::int8;

}  // namespace fusionllm::inline v0
