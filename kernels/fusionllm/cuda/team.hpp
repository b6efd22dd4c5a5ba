// SPDX-License-Identifier: Apache-2.0
// Teams: what a kernel body is written for. A body is a template on its team: a block of GPU threads (block_team.cuh)
// or a host team of one, so that a g++ test runs the same body. `rank` of `size` members work in team `index` of `count`.
#pragma once

#include <cstddef>

#include <fusionllm/core/config.hpp>
#include <fusionllm/core/types.hpp>

namespace fusionllm::inline v0 {

/// Members of a block of GPU threads; every kernel is launched with this many.
inline constexpr u32 block_size = 256;

/// A team of one on the host. Bodies that need several teams run once for each index, in order.
struct host_team {
  static constexpr u32 rank = 0, size = 1;
  u32 index = 0, count = 1;

  /// All members reach this point, and see what the others wrote to shared memory, before any goes on.
  void wait() const {}
  /// The sum of v over the members before this one; `total`: over all. Waits as `wait` does.
  u64 sum_before(u64 v, u64& total) const {
    total = v;
    return 0;
  }
  /// *to += v, whichever members do so at the same time.
  void add(u32* to, u32 v) const { *to += v; }
};

/// How many blocks cover `items` when each covers `per_block`, and no more than `limit`: bodies stride over the rest.
/// At least one.
constexpr u32 blocks_for(i64 items, i64 per_block, u32 limit) {
  const i64 wanted = items / per_block + (items % per_block != 0);
  return wanted < 1 ? 1 : wanted > i64(limit) ? limit : u32(wanted);
}

/// Four neighbours, moved by one 16-byte access if T has 4 bytes.
template <class T>
struct alignas(4 * sizeof(T)) quad {
  T v[4];
};

template <class T>
FL_HD inline bool quad_aligned(const T* p) {
  return reinterpret_cast<std::size_t>(p) % sizeof(quad<T>) == 0;
}

/// Elements first .. first + 3 of n. Whole: all are there, and p is `quad_aligned`; else those past the end repeat the
/// last. Two functions, since nvcc merges the loads of two branches into narrow ones.
template <bool Whole, class T>
FL_HD inline quad<T> load_quad(const T* p, i64 first, i64 n) {
  if constexpr (Whole) {
    return *reinterpret_cast<const quad<T>*>(p + first);
  } else {
    quad<T> q;
    for (i64 j = 0; j < 4; ++j) q.v[j] = p[first + j < n ? first + j : n - 1];
    return q;
  }
}

template <bool Whole, class T>
FL_HD inline void store_quad(const quad<T>& q, T* p, i64 first, i64 n) {
  if constexpr (Whole) {
    *reinterpret_cast<quad<T>*>(p + first) = q;
  } else {
    for (i64 j = 0; j < 4 && first + j < n; ++j) p[first + j] = q.v[j];
  }
}

}  // namespace fusionllm::inline v0
