// SPDX-License-Identifier: Apache-2.0
// Where the kernels that are our own are found, and what launches them. `team_kernel<Op, T, Launch>` has the functions of
// `kernel<Op, Device>` for activations of type T (float, or 16 bits wide; parameters, gradients of parameters, what is
// saved and all sums are float or wider). Launch runs bodies on teams: on blocks and warps of a GPU (launch.cuh), or on
// the host (host_launch below), so that a g++ test runs all of a kernel but its launch.
#pragma once

#include <memory>

#include <fusionllm/device/kernel.hpp>

#include "team.hpp"

namespace fusionllm::inline v0 {

/// Specialized in one header an operator.
template <class Op, class T, class Launch>
struct team_kernel;

template <class Op, class T, class Launch>
concept has_team_kernel = requires { sizeof(team_kernel<Op, T, Launch>); };

/// Rows up to this length are reduced by a warp, longer ones by a block: bits depend on shapes alone.
inline constexpr i64 warp_row = 1024;

/// Teams of one, at most `most` of them, one after another.
struct host_launch {
  using context = device_context;
  static constexpr u32 most = 3;

  /// Runs `body` on blocks: as many as `wanted`, or fewer that stride over the work. `what`: for errors.
  template <class Body>
  static void blocks(context&, i64 wanted, const Body& body, const char*) {
    const auto shared = std::make_unique<shared_memory_of<Body, host_team>>();
    const u32 count = blocks_for(wanted, 1, most);
    for (u32 i = 0; wanted > 0 && i < count; ++i) run_body(body, host_team{i, count}, *shared);
  }
  /// One team for each of `rows` rows of `length`: warps or blocks.
  template <class Body>
  static void rows(context& c, i64 rows, i64, const Body& body, const char* what) {
    blocks(c, rows, body, what);
  }
  /// A member for each of `items`.
  template <class Body>
  static void items(context& c, i64 items, const Body& body, const char* what) {
    blocks(c, items, body, what);
  }
};

/// Calls f(i) for the member's share of 0 .. n - 1, where all members of all teams share the work.
template <class Team, class F>
FL_HD inline void each_item(const Team& team, i64 n, F&& f) {
  const i64 step = i64(team.count) * Team::size;
  for (i64 i = i64(team.index) * Team::size + team.rank; i < n; i += step) f(i);
}
/// Calls f(row) for the team's share of the rows.
template <class Team, class F>
FL_HD inline void each_row(const Team& team, i64 rows, F&& f) {
  for (i64 r = team.index; r < rows; r += team.count) f(r);
}
/// Calls f(i) for the member's share of 0 .. n - 1 within its team.
template <class Team, class F>
FL_HD inline void each_member(const Team& team, i64 n, F&& f) {
  for (i64 i = team.rank; i < n; i += Team::size) f(i);
}

}  // namespace fusionllm::inline v0
