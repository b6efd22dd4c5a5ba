// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy without a second copy of the logits: forward reads them once, keeping a running maximum; backward
// writes their cotangent over them. The terms of rows are summed in double by one team, in an order that depends on the
// number of rows alone.
#pragma once

#include <cmath>
#include <limits>

#include <fusionllm/ops/loss.hpp>

#include "total.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// The sum over a member's logits of exp(x - largest), when `largest` grows.
struct running_sum {
  float largest = std::numeric_limits<float>::lowest(), sum = 0;  // not -infinity, which a logit may be
  FL_HD void add(float x) {
    if (x > largest) {
      sum *= std::exp(largest - x);
      largest = x;
    }
    sum += std::exp(x - largest);
  }
  /// Over the team. A member without logits adds nothing.
  template <class Team>
  FL_HD running_sum over(const Team& team) const {
    const float most = team.largest(largest);
    return {most, team.sum(sum == 0 ? 0.0f : sum * std::exp(largest - most))};
  }
};

template <class T>
struct cross_entropy_rows {
  const T* logits;
  const std::int32_t* target;
  float* saved;   ///< null: not wanted; else log-sum-exps, then what their rounding took away
  double* terms;  ///< of each row, unscaled
  i64 rows, classes, ignored;
  double smoothing;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T* x = logits + r * classes;
      running_sum mine;
      double plain = 0;
      each_member(team, classes, [&](i64 i) {
        mine.add(float(x[i]));
        if (smoothing != 0) plain += double(float(x[i]));
      });
      const running_sum all = mine.over(team);
      if (smoothing != 0) plain = team.sum(plain);
      if (team.rank != 0) return;
      const float log = std::log(all.sum), value = all.largest + log, rest = (all.largest - value) + log;
      if (saved) {
        saved[r] = value;
        saved[rows + r] = rest;
      }
      if (target[r] == ignored) return;
      double term = double(value) + double(rest) - (1 - smoothing) * double(float(x[target[r]]));
      if (smoothing != 0) term -= smoothing * (plain / double(classes));
      terms[r] = term;
    });
  }
};

template <class T>
struct cross_entropy_total {
  const double* terms;
  const std::int32_t* target;
  loss_place<T> out;
  i64 rows, ignored;
  double scale;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    double sum = 0;
    bool counts = false;
    each_member(team, rows, [&](i64 r) {
      if (target[r] == ignored) return;
      sum += terms[r];
      counts = true;
    });
    sum = team.sum(sum);
    counts = team.any(counts);
    if (team.rank == 0) out.put(counts ? sum * scale : 0);
  }
};

template <class T>
struct cross_entropy_cotangent {
  const T* logits;
  const std::int32_t* target;
  const float* saved;
  T* d;  ///< may be the logits
  i64 rows, classes, ignored;
  float scale, spread, whole;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const T* x = logits + r * classes;
      T* to = d + r * classes;
      const bool counts = target[r] != ignored;
      const i64 right = target[r];
      const float value = saved[r], rest = saved[rows + r];
      each_member(team, classes, [&](i64 i) {
        to[i] = T(counts ? scale * (std::exp(float(x[i]) - value - rest) - (i == right ? whole : 0.0f) - spread) : 0.0f);
      });
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<cross_entropy_op, T, Launch> {
  static constexpr u64 workspace_bytes(const op_view& v) { return u64(v.in[1].count()) * sizeof(double); }

  /// logits (rows, classes), targets (rows) -> the sum over rows of log-sum-exp(logits) - logits[target], scaled
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const i64 rows = a.in[0].dims.rows(), classes = a.in[0].dims.last(), ignored = a.op->attr.n[0];
    const auto* target = a.in[1].as<const std::int32_t>();
    double* terms = static_cast<double*>(a.workspace);
    Launch::rows(c, rows, classes,
                 detail::cross_entropy_rows<T>{a.in[0].template as<const T>(), target, static_cast<float*>(a.saved),
                                               terms, rows, classes, ignored, a.op->attr.x},
                 "launch a cross-entropy");
    Launch::blocks(c, 1,
                   detail::cross_entropy_total<T>{terms, target, loss_place<T>(a.out), rows, ignored, a.loss_scale},
                   "launch the sum of a cross-entropy");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const i64 rows = a.in[0].dims.rows(), classes = a.in[0].dims.last();
    Launch::rows(c, rows, classes,
                 detail::cross_entropy_cotangent<T>{
                     a.in[0].template as<const T>(), a.in[1].as<const std::int32_t>(),
                     static_cast<const float*>(a.saved), a.d_in[0].template as<T>(), rows, classes, a.op->attr.n[0],
                     float(a.loss_scale), float(a.op->attr.x / double(classes)), float(1 - a.op->attr.x)},
                 "launch the cotangent of a cross-entropy");
  }
};

}  // namespace fusionllm::inline v0
