// SPDX-License-Identifier: Apache-2.0
// Learned positions: a row of a table added to each time. The gradient adds the sequences in ascending order, as plain
// loops do.
#pragma once

#include <fusionllm/ops/embedding.hpp>

#include "copy.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct positions_forward {
  const T* x;
  const float* table;  ///< the row of time 0
  T* out;              ///< may be x
  i64 rows, times, features;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, rows, [&](i64 r) {
      const i64 at = r * features, place = r % times * features;
      each_member(team, features, [&](i64 f) { out[at + f] = T(float(x[at + f]) + table[place + f]); });
    });
  }
};

template <class T>
struct positions_gradient {
  const T* d_out;
  float* d_table;
  i64 sequences, row;  ///< a row: all times of a sequence

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, row, [&](i64 i) {
      float sum = d_table[i];
      for (i64 b = 0; b < sequences; ++b) sum += float(d_out[b * row + i]);
      d_table[i] = sum;
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<positions_op, T, Launch> {
  /// x (batch, time, features), table (max time, features) -> x + table[time]
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const i64 rows = a.out.dims.rows(), features = a.out.dims.last();
    Launch::rows(c, rows, features,
                 detail::positions_forward<T>{a.in[0].template as<const T>(),
                                              a.param[0].as<const float>() + a.past * features,
                                              a.out.template as<T>(), rows, a.out.dims.d[1], features},
                 "launch the adding of positions");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (a.d_in[0]) copy_elements<T, Launch>(c, a.d_out, a.d_in[0]);
  }
  static void backward_weight(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_param[0]) return;
    const i64 row = a.d_out.dims.d[1] * a.d_out.dims.d[2];
    Launch::items(c, row,
                  detail::positions_gradient<T>{a.d_out.template as<const T>(), a.d_param[0].as<float>(),
                                                a.d_out.dims.d[0], row},
                  "launch the gradient of positions");
  }
};

}  // namespace fusionllm::inline v0
