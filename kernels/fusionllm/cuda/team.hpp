// SPDX-License-Identifier: Apache-2.0
// Teams: what a kernel body is written for. A body is a template on its team: a block of GPU threads (block_team.cuh)
// or a host team of one, so that a g++ test runs the same body. `rank` of `size` members work in team `index` of `count`.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>

#include <fusionllm/core/config.hpp>
#include <fusionllm/core/types.hpp>

namespace fusionllm::inline v0 {

/// Members of a block of GPU threads; every kernel is launched with this many.
inline constexpr u32 block_size = 256;

/// A team of one on the host. Bodies that need several teams run once for each index, in order.
struct host_team {
  static constexpr u32 rank = 0, size = 1;
  u32 index = 0, count = 1;

  /// All members reach this point, and see what the others wrote to shared memory, before any goes on. From then on its
  /// bytes may be used as another type.
  void wait() const { std::atomic_signal_fence(std::memory_order_seq_cst); }
  /// The sum of v over the members before this one; `total`: over all. Waits as `wait` does.
  u64 sum_before(u64 v, u64& total) const {
    total = v;
    return 0;
  }
  /// The sum of v, a float or a double, over the members, in an order that depends on the team's size alone; the largest
  /// of v; whether v is true for any. Every member gets it. They wait as `wait` does.
  template <class T>
  T sum(T v) const {
    return v;
  }
  float largest(float v) const { return v; }
  bool any(bool v) const { return v; }
  /// *to += v, whichever members do so at the same time.
  void add(u32* to, u32 v) const { *to += v; }
};

/// What a body that shares nothing between members has in shared memory.
struct nothing_shared {};

namespace detail {
template <class Body, class Team>
struct shared_memory_of {
  using type = nothing_shared;
};
template <class Body, class Team>
  requires requires { typename Body::template shared<Team>; }
struct shared_memory_of<Body, Team> {
  using type = typename Body::template shared<Team>;
};
}  // namespace detail

/// What the members of a team share in a body: `Body::shared<Team>`, uninitialized.
template <class Body, class Team>
using shared_memory_of = typename detail::shared_memory_of<Body, Team>::type;

/// Runs a body: a copyable struct with operator()(team), or operator()(team, shared) if it has a type `shared<Team>`.
template <class Body, class Team>
FL_HD inline void run_body(const Body& body, const Team& team,
                           [[maybe_unused]] shared_memory_of<Body, Team>& shared) {
  if constexpr (requires { body(team, shared); })
    body(team, shared);
  else
    body(team);
}

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

/// The same numbers in another type.
template <class To, class From>
FL_HD inline quad<To> quad_of(const quad<From>& q) {
  if constexpr (std::is_same_v<To, From>) {
    return q;
  } else {
    quad<To> r;
    for (int j = 0; j < 4; ++j) r.v[j] = To(q.v[j]);
    return r;
  }
}

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
