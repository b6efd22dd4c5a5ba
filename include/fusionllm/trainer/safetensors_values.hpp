// SPDX-License-Identifier: Apache-2.0
// Elements of safetensors to and from fp32 and fp64. What a type can hold is exact; nothing becomes an infinity, or
// another whole number, unseen. Bytes need no alignment.
#pragma once

#include <cmath>
#include <cstring>

#include "../core/half.hpp"
#include "safetensors_type.hpp"

namespace fusionllm::inline v0::detail {

template <class Stored>
Stored stored_at(const std::byte* from, std::size_t i) {
  Stored x;
  std::memcpy(&x, from + i * sizeof x, sizeof x);
  return x;
}

template <class Stored, class T>
void widen_elements(const std::byte* from, std::size_t n, T* to) {
  for (std::size_t i = 0; i < n; ++i) {
    if constexpr (sizeof(Stored) == 2 && !std::is_integral_v<Stored>) to[i] = T(float(stored_at<Stored>(from, i)));
    else to[i] = T(stored_at<Stored>(from, i));
  }
}

/// As `widen_elements`; stops at the first element that has another value in T and gives its index, n if there is none.
template <class Stored, class T>
std::size_t widen_checked(const std::byte* from, std::size_t n, T* to) {
  constexpr int bits = std::is_same_v<T, float> ? 24 : 53;
  for (std::size_t i = 0; i < n; ++i) {
    const Stored x = stored_at<Stored>(from, i);
    to[i] = T(x);
    if constexpr (std::is_integral_v<Stored>) {
      const std::uint64_t size = x < 0 ? std::uint64_t(0) - std::uint64_t(x) : std::uint64_t(x);
      if (size > std::uint64_t(1) << bits) return i;
    } else {
      if (std::isinf(to[i]) && !std::isinf(x)) return i;
    }
  }
  return n;
}

/// n elements of a readable type. Returns n, or the index of the first that T cannot hold.
template <class T>
std::size_t widen(stored_type type, const std::byte* from, std::size_t n, T* to) {
  switch (type) {
    case stored_type::f64:
      if constexpr (std::is_same_v<T, double>) return std::memcpy(to, from, n * sizeof(T)), n;
      else return widen_checked<double>(from, n, to);
    case stored_type::f32: return widen_elements<float>(from, n, to), n;
    case stored_type::f16: return widen_elements<float16>(from, n, to), n;
    case stored_type::bf16: return widen_elements<bfloat16>(from, n, to), n;
    case stored_type::int64: return widen_checked<std::int64_t>(from, n, to);
    case stored_type::int32: return widen_checked<std::int32_t>(from, n, to);
    case stored_type::int16: return widen_elements<std::int16_t>(from, n, to), n;
    case stored_type::int8: return widen_elements<std::int8_t>(from, n, to), n;
    case stored_type::uint64: return widen_checked<std::uint64_t>(from, n, to);
    case stored_type::uint32: return widen_checked<std::uint32_t>(from, n, to);
    case stored_type::uint16: return widen_elements<std::uint16_t>(from, n, to), n;
    case stored_type::uint8: return widen_elements<std::uint8_t>(from, n, to), n;
    default: return 0;
  }
}

/// n elements, rounded to nearest even, to a type among f64, f32, f16, bf16; fp64 to f16 and bf16 by way of fp32, which may
/// give the other neighbour of one that is next to the middle of two. Returns n, or the index of the first finite one that
/// would become an infinity.
template <class T>
std::size_t narrow(stored_type type, const T* from, std::size_t n, std::byte* to) {
  const auto each = [&](auto convert, auto infinite) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto x = convert(from[i]);
      std::memcpy(to + i * sizeof x, &x, sizeof x);
      if (infinite(x) && std::isfinite(from[i])) return i;
    }
    return n;
  };
  const auto half_is_infinite = [](auto x) { return std::isinf(float(x)); };
  switch (type) {
    case stored_type::f64: return each([](T x) { return double(x); }, [](double) { return false; });
    case stored_type::f32: return each([](T x) { return float(x); }, [](float x) { return std::isinf(x); });
    case stored_type::f16: return each([](T x) { return float16(float(x)); }, half_is_infinite);
    case stored_type::bf16: return each([](T x) { return bfloat16(float(x)); }, half_is_infinite);
    default: return 0;
  }
}

}  // namespace fusionllm::inline v0::detail
