// SPDX-License-Identifier: Apache-2.0
// Shapes twice: as types in the handles of a model's definition (so that errors show them), as values in the nodes of
// its graph (so that operators are not instantiated once a shape). Two extents are known only at run time.
#pragma once

#include <array>
#include <utility>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// The run-time extents: `shape<batch, time, 384>`.
inline constexpr i64 batch = -1;
inline constexpr i64 time = -2;

inline constexpr int max_rank = 4;

/// A shape in a type.
template <i64... D>
struct shape {
  static constexpr int rank = sizeof...(D);
  static_assert(rank >= 1 && rank <= max_rank, "a tensor has one to four dimensions");
  static constexpr std::array<i64, sizeof...(D)> dims{D...};
  static constexpr i64 last = dims[sizeof...(D) - 1];
};

namespace detail {
template <class S, i64 N, class I = std::make_index_sequence<S::rank - 1>>
struct with_last;
template <class S, i64 N, std::size_t... I>
struct with_last<S, N, std::index_sequence<I...>> {
  using type = shape<S::dims[I]..., N>;
};
}  // namespace detail

/// The shape S with its last extent replaced by N.
template <class S, i64 N>
using with_last = typename detail::with_last<S, N>::type;

/// What `batch` and `time` are in one micro-batch, or their bounds in a run.
struct sizes {
  i64 batch = 1;
  i64 time = 1;
  constexpr bool operator==(const sizes&) const = default;
};

/// A shape as a value; symbolic while it holds `batch` or `time`, concrete after `resolve`.
struct extents {
  int rank = 0;
  std::array<i64, max_rank> d{};

  constexpr i64 last() const { return rank ? d[std::size_t(rank - 1)] : 1; }
  /// Elements of a concrete shape; a rank of 0 holds one.
  constexpr i64 count() const {
    i64 n = 1;
    for (int i = 0; i < rank; ++i) n *= d[std::size_t(i)];
    return n;
  }
  /// Product of all extents but the last.
  constexpr i64 rows() const { return rank ? count() / (last() ? last() : 1) : 1; }
  constexpr extents resolve(const sizes& s) const {
    extents r = *this;
    for (auto& x : r.d) x = x == batch ? s.batch : x == time ? s.time : x;
    return r;
  }
  constexpr bool symbolic() const {
    for (auto x : d)
      if (x < 0) return true;
    return false;
  }
  constexpr bool operator==(const extents&) const = default;
};

template <class S>
constexpr extents extents_of() {
  extents e;
  e.rank = S::rank;
  for (int i = 0; i < S::rank; ++i) e.d[std::size_t(i)] = S::dims[std::size_t(i)];
  return e;
}

}  // namespace fusionllm::inline v0
