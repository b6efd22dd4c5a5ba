// SPDX-License-Identifier: Apache-2.0
// One number from many, in double: parts by teams, then all parts by one team.
#pragma once

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

/// Parts in which n terms are summed: a function of n alone.
constexpr i64 parts_of_total(i64 n) { return n <= 4096 ? 1 : n >= i64(512) * 4096 ? 512 : (n + 4095) / 4096; }
/// Doubles that `total` scribbles on.
constexpr u64 total_workspace(i64 n) { return u64(parts_of_total(n)); }

/// Where a loss goes: a float if its tensor says so, else what activations are.
template <class T>
struct loss_place {
  void* data;
  bool wide;
  explicit loss_place(const tensor_ref& out) : data(out.data), wide(out.type == dtype::f32) {}
  FL_HD void put(double loss) const {
    if (wide) *static_cast<float*>(data) = float(loss);
    else *static_cast<T*>(data) = T(float(loss));
  }
};

namespace detail {

template <class Terms>
struct total_parts {
  Terms terms;
  i64 n;
  double* part;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    const i64 parts = parts_of_total(n), each = (n + parts - 1) / parts;
    each_row(team, parts, [&](i64 p) {
      const i64 begin = p * each < n ? p * each : n, end = begin + each < n ? begin + each : n;
      double sum = 0;
      each_member(team, end - begin, [&](i64 i) { sum += terms(begin + i); });
      sum = team.sum(sum);
      if (team.rank == 0) part[p] = sum;
    });
  }
};

template <class T>
struct total_of_parts {
  const double* part;
  i64 parts;
  double scale;
  loss_place<T> out;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    double sum = 0;
    each_member(team, parts, [&](i64 p) { sum += part[p]; });
    sum = team.sum(sum);
    if (team.rank == 0) out.put(sum * scale);
  }
};

}  // namespace detail

/// out = scale * (terms(0) + ... + terms(n - 1)); `workspace`: `total_workspace(n)` doubles.
template <class Launch, class Terms, class T>
void total(typename Launch::context& c, const Terms& terms, i64 n, double scale, loss_place<T> out, double* workspace,
           const char* what) {
  Launch::blocks(c, parts_of_total(n), detail::total_parts<Terms>{terms, n, workspace}, what);
  Launch::blocks(c, 1, detail::total_of_parts<T>{workspace, parts_of_total(n), scale, out}, what);
}

}  // namespace fusionllm::inline v0
