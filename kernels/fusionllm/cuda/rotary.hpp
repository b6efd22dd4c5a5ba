// SPDX-License-Identifier: Apache-2.0
// Rotary positions: the cosines and sines of all times are made once a call, in double, then every pair turns.
#pragma once

#include <cmath>

#include <fusionllm/device/rotation.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// (times, half): cosine and sine of each angle.
struct rotary_angles {
  float *cosine, *sine;
  i64 times, half, past;
  double theta;
  bool backward;  ///< turns the other way

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, times * half, [&](i64 k) {
      const double angle = double(past + k / half) * std::pow(theta, -double(k % half) / double(half));
      cosine[k] = float(std::cos(angle));
      sine[k] = float(backward ? -std::sin(angle) : std::sin(angle));
    });
  }
};

template <class T>
struct rotary_turn {
  const T* x;
  T* y;  ///< may be x
  const float *cosine, *sine;
  i64 rows, times, features, half;

  /// A row is one time of one sequence.
  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const i64 angles = r % times * half;
      each_member(team, features / 2, [&](i64 k) {
        const i64 i = k % half, at = r * features + k / half * 2 * half + i;
        const float a = float(x[at]), b = float(x[at + half]), c = cosine[angles + i], s = sine[angles + i];
        y[at] = T(a * c - b * s);
        y[at + half] = T(b * c + a * s);
      });
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<rotary_op, T, Launch> {
  static constexpr u64 workspace_bytes(const op_view& v) {
    return u64(v.out.d[1]) * u64(v.attr.n[0]) * sizeof(float);
  }
  static void forward(typename Launch::context& c, const kernel_args& a) {
    turn(c, a, rotation(a), false, a.in[0], a.out);
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (a.d_in[0]) turn(c, a, rotation(*a.op, a.d_out.dims), true, a.d_out, a.d_in[0]);
  }

 private:
  static void turn(typename Launch::context& c, const kernel_args& a, const rotation& r, bool backward,
                   const tensor_ref& x, const tensor_ref& y) {
    float* cosine = static_cast<float*>(a.workspace);
    float* sine = cosine + r.steps * r.half;
    Launch::items(c, r.steps * r.half,
                  detail::rotary_angles{cosine, sine, r.steps, r.half, r.past, r.theta, backward},
                  "launch the angles of rotary positions");
    Launch::rows(c, r.sequences * r.steps, r.features,
                 detail::rotary_turn<T>{x.template as<const T>(), y.template as<T>(), cosine, sine,
                                        r.sequences * r.steps, r.steps, r.features, r.half},
                 "launch rotary positions");
  }
};

}  // namespace fusionllm::inline v0
